"""Removes a target's side in an uninstall: chaperons, delegate pods, Sources and their bindings.

First, sources lose the permission to create chaperons, but keep the one to watch them: each source
sees its delegate pods terminate and releases its proxy pods. To keep delegate pods, this removes
only finalizers and, before the CRDs are deleted, owner references: the garbage collector would
delete the pods with their chaperons. Delegate pods that their source has already deleted terminate
in any case, because it takes the end of the chaperon for the end of the pod and may then start
another one elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from vnode.api import keys, kinds, objects, route
from vnode.api.errors import NotFound
from vnode.api.objects import Object, Objects
from vnode.api.owners import OwnerKey, key_as_owner, owner_key
from vnode.cli import tables, waiting
from vnode.cli.remove.finalizer_removal import FinalizerRemover, remove_finalizers
from vnode.cli.remove.report import RemovalReport, counted, remove
from vnode.cli.remove.source_side import Ends
from vnode.kube.client import Client
from vnode.targets import source_rbac

_AGENTS_TIME: Final = 5.0  # seconds within which a running agent has reacted


async def close(client: Client, report: RemovalReport) -> None:
    """Revoke the right of sources to create chaperons; they can still watch and delete them."""
    try:
        role = await client.get(kinds.CLUSTER_ROLES, source_rbac.SOURCE_ROLE)
    except NotFound:
        return

    await client.patch(
        kinds.CLUSTER_ROLES, source_rbac.SOURCE_ROLE, {"rules": without_create(role)}
    )
    report.say("sources can no longer send pods")


def without_create(role: Object) -> Objects:
    """Return the rules of a role without the right to create chaperons. Pure."""
    return [
        {**rule, "verbs": [verb for verb in rule.get("verbs") or () if verb != "create"]}
        if kinds.POD_CHAPERONS.plural in (rule.get("resources") or ())
        else rule
        for rule in role.get("rules") or ()
    ]


async def end_delegates(client: Client, *, led: bool, ends: Ends, report: RemovalReport) -> int:
    """Delete all chaperons with their delegate pods; return how many are left in the end.

    Where an agent leads, it deletes the delegate pods; where none does, this function does.
    """
    found = await client.list(kinds.POD_CHAPERONS)
    for chaperon in found:
        await client.discard(kinds.POD_CHAPERONS, chaperon)

    if found:
        report.say(f"deleted {counted(found, 'PodChaperon')}; their delegate pods are terminating")

    return await _wait_for_end(client, _any, found, led=led, ends=ends, report=report)


async def end_pods_of_absent_owners(client: Client, ends: Ends, report: RemovalReport) -> int:
    """End delegate pods whose chaperon is gone; return how many are left in the end.

    A chaperon without our finalizer goes before its pod, which the garbage collector deletes later:
    one of a source with Admiralty, or one that an uninstall has kept before.
    """
    owners: set[OwnerKey | None] = set()
    with suppress(NotFound):  # the CRD is gone
        owners = {key_as_owner(chaperon) for chaperon in await client.list(kinds.POD_CHAPERONS)}

    def is_left_over(pod: Object) -> bool:
        return route.is_delegate(pod) and owner_key(pod) not in owners

    left = await _end_pods(client, is_left_over, ends)
    if left:
        report.left.append(_not_terminated(left, ends))

    return len(left)


async def _end_pods(client: Client, selects: Callable[[Object], bool], ends: Ends) -> Objects:
    """Delete delegate pods, and wait until they are gone; return those that are left."""
    for pod in await client.list(kinds.PODS, label_selector=keys.PARENT_UID):
        if selects(pod) and not objects.is_terminating(pod):
            await client.discard(kinds.PODS, pod)

    return await waiting.until_gone(
        client, kinds.PODS, selects, ends.seconds, label_selector=keys.PARENT_UID
    )


def _not_terminated(left: Objects, ends: Ends) -> str:
    return (
        f"{counted(left, 'delegate pod')} did not terminate within {ends.seconds:.0f} s "
        f"(first: {objects.key(left[0])}): run this again when none is left"
    )


async def _wait_for_end(
    client: Client,
    selects: Callable[[Object], bool],
    found: Objects,
    *,
    led: bool,
    ends: Ends,
    report: RemovalReport,
) -> int:
    """Wait until deleted chaperons, such as those `found`, are gone; return how many are left."""
    left = found
    if led:
        left = await waiting.until_gone(client, kinds.POD_CHAPERONS, selects, ends.seconds)

    if left:
        await _end_without_agent(client, selects, ends)
        left = await waiting.until_gone(client, kinds.POD_CHAPERONS, selects, _AGENTS_TIME)

    if left:
        report.left.append(_not_terminated(left, ends))

    return len(left)


def _any(_obj: Object) -> bool:
    return True


async def _end_without_agent(client: Client, selects: Callable[[Object], bool], ends: Ends) -> None:
    """Do an agent's work for deleted chaperons: delete the pod, then remove the finalizer."""
    found = await client.list(kinds.POD_CHAPERONS)
    chaperons = {key_as_owner(obj): obj for obj in found if selects(obj)}

    left = await _end_pods(client, lambda pod: owner_key(pod) in chaperons, ends)
    running = {owner_key(pod) for pod in left}
    for owner, chaperon in chaperons.items():
        if owner not in running:
            await remove_finalizers(client, chaperon)


async def keep_delegates(
    client: Client, *, detach: bool, led: bool, ends: Ends, report: RemovalReport
) -> int:
    """Remove the finalizers from chaperons; `detach` also removes the pods' owner references.

    Return how many chaperons are left after `ends.seconds`: those that were being deleted already,
    which keep their finalizer until their pod is gone, and those that arrived too late.
    """
    remover = FinalizerRemover(client, detach=detach)
    late, count = await remover.run(ends.seconds), len(remover.staying)
    if late:
        report.left.append(
            f"{counted(late, 'delegate pod')} not released within {ends.seconds:.0f} s "
            f"(first: {objects.key(late[0])}): run this again"
        )
    elif count and detach:
        report.left.append(f"{counted(count, 'delegate pod')} kept as ordinary pods, as requested")
    elif count:
        report.left.append(
            f"{counted(count, 'PodChaperon')} kept with their delegate pods, as requested: a new "
            "agent would take them over, and deleting a PodChaperon deletes its pod"
        )

    return len(late) + await end_terminating(client, led=led, ends=ends, report=report)


async def end_terminating(client: Client, *, led: bool, ends: Ends, report: RemovalReport) -> int:
    """Have chaperons end that were deleted already; return how many are left."""
    ending = list(filter(objects.is_terminating, await client.list(kinds.POD_CHAPERONS)))
    return await _wait_for_end(
        client, objects.is_terminating, ending, led=led, ends=ends, report=report
    )


async def end_sources(client: Client, sources: Objects, report: RemovalReport) -> None:
    """Delete Sources, and their bindings, which would stay in a cluster without an agent.

    The garbage collector deletes their service accounts.
    """
    for source in sources:
        await remove(client, tables.source_kind(source), source, report)

    gone = {objects.key(source) for source in sources}
    label = f"{source_rbac.MADE_FOR_SOURCE}=true"
    for kind in (kinds.ROLE_BINDINGS, kinds.CLUSTER_ROLE_BINDINGS):
        for binding in await client.list(kind, label_selector=label):
            if gone.intersection(source_rbac.binding_source(binding)):
                await client.discard(kind, binding)
