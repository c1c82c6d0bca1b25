"""The target's side of an uninstallation: chaperons and delegates, Sources and their rights.

The door is closed first: sources lose the right to create chaperons, but not to see them, so that
where delegates end, each of them follows the end of its pods and lets the proxies go. To keep them,
nothing is deleted but finalizers; before CRDs go, delegates are detached from their chaperons, or
the garbage collector would take them along. Those that their source has already deleted end all
the same: it takes the chaperon's end for that of the pod, and may then start another elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object, Objects
from vnode.cli import tables
from vnode.cli.removing import waiting
from vnode.cli.removing.keeping import Keeper, let_go
from vnode.cli.removing.reporting import Report, remove
from vnode.cli.removing.source_side import Ends
from vnode.kube.client import Client
from vnode.targets import source_rbac

_AGENTS_TIME: Final = 5.0  # seconds in which an agent that works has begun


async def close(client: Client, report: Report) -> None:
    """Sources may create no chaperons any more; those that are there can be seen and deleted."""
    try:
        role = await client.get(kinds.CLUSTER_ROLES, source_rbac.SOURCE_ROLE)
    except NotFound:
        return

    await client.patch(
        kinds.CLUSTER_ROLES, source_rbac.SOURCE_ROLE, {"rules": without_create(role)}
    )
    report.say("sources may send no more pods")


def without_create(role: Object) -> Objects:
    """The rules of a role, less the creation of chaperons. Pure."""
    return [
        {**rule, "verbs": [verb for verb in rule.get("verbs") or () if verb != "create"]}
        if kinds.POD_CHAPERONS.plural in (rule.get("resources") or ())
        else rule
        for rule in role.get("rules") or ()
    ]


async def end_delegates(client: Client, *, led: bool, ends: Ends, report: Report) -> int:
    """Delete all chaperons and their delegates; how many chaperons are left after `ends.seconds`.

    Where an agent leads, it ends the delegates; where none does, that is done here.
    """
    found = await client.list(kinds.POD_CHAPERONS)
    for chaperon in found:
        await client.discard(kinds.POD_CHAPERONS, chaperon)

    if found:
        report.say(f"{len(found)} chaperons deleted; their pods end")

    return await _see_end(client, _any, found, led=led, ends=ends, report=report)


async def _see_end(
    client: Client,
    is_meant: Callable[[Object], bool],
    found: Objects,
    *,
    led: bool,
    ends: Ends,
    report: Report,
) -> int:
    """Wait for deleted chaperons, of which some were `found`; how many are left in the end."""
    left = found
    if led:
        left = await waiting.until_gone(client, kinds.POD_CHAPERONS, is_meant, ends.seconds)

    if left:
        await _end_without_agent(client, is_meant, ends)
        left = await waiting.until_gone(client, kinds.POD_CHAPERONS, is_meant, _AGENTS_TIME)

    if left:
        report.left.append(
            f"{len(left)} delegates have not ended within {ends.seconds:.0f} s, the first is pod "
            f"{objects.key(left[0])}: run vnode uninstall again when they have"
        )

    return len(left)


def _any(_obj: Object) -> bool:
    return True


async def _end_without_agent(
    client: Client, is_meant: Callable[[Object], bool], ends: Ends
) -> None:
    """What an agent does for chaperons that are deleted: end the pod, then let the chaperon go."""
    found = await client.list(kinds.POD_CHAPERONS)
    chaperons = {objects.uid(obj): obj for obj in found if is_meant(obj)}

    def is_delegate(pod: Object) -> bool:
        return objects.controller_uid(pod) in chaperons

    for pod in await client.list(kinds.PODS, label_selector=keys.PARENT_UID):
        if is_delegate(pod) and not objects.is_terminating(pod):
            await client.discard(kinds.PODS, pod)

    left = await waiting.until_gone(
        client, kinds.PODS, is_delegate, ends.seconds, label_selector=keys.PARENT_UID
    )
    running = {objects.controller_uid(pod) for pod in left}
    for uid, chaperon in chaperons.items():
        if uid not in running:
            await let_go(client, chaperon)


async def keep_delegates(
    client: Client, *, detach: bool, led: bool, ends: Ends, report: Report
) -> int:
    """Take the finalizers off chaperons; `detach` makes their pods independent of them.

    How many are left after `ends.seconds`: of those that were deleted before, which keep theirs
    until they have ended, and of those that came too late.
    """
    keeper = Keeper(client, detach=detach)
    late, count = await keeper.run(ends.seconds), len(keeper.staying)
    if late:
        report.left.append(
            f"{len(late)} delegates could not be let go within {ends.seconds:.0f} s, the first is "
            f"{objects.key(late[0])}: run vnode uninstall again"
        )
    elif count and detach:
        report.left.append(f"{count} delegates run on as plain pods, as asked")
    elif count:
        report.left.append(
            f"{count} chaperons and their delegates stay as they are, as asked: an agent "
            "that is installed again takes them over; who deletes a chaperon ends its pod"
        )

    ending = list(filter(objects.is_terminating, await client.list(kinds.POD_CHAPERONS)))
    left = await _see_end(client, objects.is_terminating, ending, led=led, ends=ends, report=report)
    return len(late) + left


async def end_sources(client: Client, sources: Objects, report: Report) -> None:
    """Delete Sources with their bindings, which a cluster without an agent would keep.

    Their service accounts are collected with them.
    """
    for source in sources:
        await remove(client, tables.source_kind(source), source, report)

    gone = {objects.key(source) for source in sources}
    label = f"{source_rbac.MADE_FOR_SOURCE}=true"
    for kind in (kinds.ROLE_BINDINGS, kinds.CLUSTER_ROLE_BINDINGS):
        for binding in await client.list(kind, label_selector=label):
            if gone.intersection(source_rbac.binding_source(binding)):
                await client.discard(kind, binding)
