"""Deletes what a source has in the cluster of a deleted Target: chaperons, and copied objects.

Several Targets may lead to one cluster. A chaperon names the Target that it came through, so the
chaperons of other Targets stay. A copied object does not, because all pods of a namespace share it:
it is deleted from each namespace where the source has no chaperon left.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, VnodeError
from vnode.api.identity import Identity, is_made_for_parent
from vnode.api.objects import Object, Objects
from vnode.cli import waiting
from vnode.cli.remove.copied_objects import remove_copies
from vnode.cli.remove.report import RemovalReport, counted
from vnode.insight.target_clients import Connect, connected
from vnode.kube.client import Client

_CONNECT_TIMEOUT: Final = 6.0  # seconds for a target to answer


@dataclass(frozen=True, slots=True)
class RemoteObjects:
    """Selects what this cluster sent through one Target.

    `ending` has the keys of all Targets that are being deleted.
    """

    target: Object
    me: Identity
    ending: frozenset[str]

    @property
    def name(self) -> str:
        """Return the key of the Target."""
        return objects.key(self.target)

    @property
    def command(self) -> str:
        """Return the command that deletes our chaperons, to be run in the target cluster."""
        return f"kubectl delete podchaperons {self._where} -l {self.me.selector}"

    @property
    def copies_command(self) -> str:
        """Return the command that deletes what was copied there for them."""
        # Device claims are left out: kubectl does nothing at all if it does not know one of them.
        served = (
            set(kinds.FOLLOWING) - kinds.FOLLOWING_WHERE_POSSIBLE | kinds.FOLLOWING_BY_EXTRA_ROLE
        )
        plurals = ",".join(kind.plural for kind in kinds.FOLLOWING if kind in served)
        return f"kubectl delete {plurals} {self._where} -l {self.me.selector}"

    @property
    def _where(self) -> str:
        namespace = objects.namespace(self.target)
        return f"-n {namespace}" if namespace else "-A"

    def owns(self, chaperon: Object) -> bool:
        """Tell whether the chaperon is ours and not known to be another Target's."""
        return self.is_our_chaperon(chaperon) and self._sender(chaperon) == self.name

    def is_anothers(self, chaperon: Object) -> bool:
        """Tell whether the chaperon is ours and of a Target that is not being deleted."""
        return self.is_our_chaperon(chaperon) and self._sender(chaperon) not in self.ending

    def is_our_chaperon(self, chaperon: Object) -> bool:
        """Tell whether this cluster's agents made it: others may write our UID on theirs."""
        return self.is_ours(chaperon) and is_made_for_parent(chaperon)

    def is_ours(self, obj: Object) -> bool:
        """Compare the cluster UID only: an object without one may be any cluster's."""
        return objects.annotations(obj).get(keys.PARENT_CLUSTER_UID) == self.me.uid

    def _sender(self, chaperon: Object) -> str:
        return objects.annotations(chaperon).get(keys.TARGET, self.name)


async def delete(
    client: Client,
    remote: RemoteObjects,
    seconds: float,
    report: RemovalReport,
    *,
    connect: Connect = connected,
) -> None:
    """Delete our chaperons in a target and wait until they are gone, then copies no pod uses.

    For clusters without an agent, and for Targets that the agent keeps. `connect` is as in
    `collect`.
    """
    namespace = objects.namespace(remote.target) or None
    try:
        async with (
            asyncio.timeout(_CONNECT_TIMEOUT + 2 * seconds),
            connect(client, remote.target) as target_client,
        ):
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                found = list(filter(remote.owns, await _ours(target_client, remote)))

            for chaperon in found:
                await target_client.discard(kinds.POD_CHAPERONS, chaperon)

            left = await waiting.until_gone(
                target_client, kinds.POD_CHAPERONS, remote.owns, seconds, namespace=namespace
            )
            if found:
                ended = len(found) - len(left)
                report.say(f"target {remote.name}: deleted {ended} of {len(found)} PodChaperons")

            await _report_left(client, target_client, remote, report)
    except (VnodeError, TimeoutError) as error:
        _report_unreachable(remote, error, report)


async def find(client: Client, remote: RemoteObjects, report: RemovalReport, count: int) -> None:
    """Report what the agent left in a target, of `count` pods, and delete unused copies."""
    try:
        async with (
            asyncio.timeout(_CONNECT_TIMEOUT),
            connected(client, remote.target) as target_client,
        ):
            await _report_left(client, target_client, remote, report)
    except (VnodeError, TimeoutError) as error:
        if count:
            _report_unreachable(remote, error, report)


def _report_unreachable(remote: RemoteObjects, error: BaseException, report: RemovalReport) -> None:
    why = str(error) or "no answer"
    if isinstance(error, ConfigError):
        why = f"its credentials cannot be used: {error}"

    report.left.append(
        f"target {remote.name} is unreachable ({why}); its delegate pods keep running. "
        f"To delete them, run in that cluster: {remote.command}"
    )


async def _report_left(
    client: Client, target_client: Client, remote: RemoteObjects, report: RemovalReport
) -> None:
    """Report the chaperons that are left; if this Target has none, delete copies no pod uses."""
    present = await _ours(target_client, remote)
    left = list(filter(remote.owns, present))
    others = list(filter(remote.is_anothers, present))
    both = "them, and those of other Targets" if others else "them"
    if left:
        report.left.append(
            f"target {remote.name}: {counted(left, 'delegate pod')} not terminated. "
            f"To delete {both}, run in that cluster: {remote.command}"
        )
    else:
        used = {objects.namespace(chaperon) for chaperon in present}
        await _delete_unused_copies(client, target_client, remote, used, report)

    if others:
        report.left.append(
            f"target {remote.name}: {counted(others, 'delegate pod')} kept, sent through other "
            "Targets of this cluster"
        )


async def _delete_unused_copies(
    client: Client,
    target_client: Client,
    remote: RemoteObjects,
    used_namespaces: set[str],
    report: RemovalReport,
) -> None:
    """Delete our copies outside of these namespaces, and this Target's tokens everywhere."""

    def selects(copy: Object) -> bool:
        is_token = objects.annotations(copy).get(keys.TARGET) == remote.name
        return remote.is_ours(copy) and (is_token or objects.namespace(copy) not in used_namespaces)

    async def taking_part() -> list[str]:
        selector = "=".join(keys.WEBHOOK_NAMESPACE_LABEL)
        return [
            objects.name(n) for n in await client.list(kinds.NAMESPACES, label_selector=selector)
        ]

    namespace, where = objects.namespace(remote.target) or None, f"target {remote.name}: "
    known = None if namespace else taking_part
    await remove_copies(target_client, namespace, selects, report, where=where, known=known)


async def _ours(target_client: Client, remote: RemoteObjects) -> Objects:
    """List the chaperons of this cluster, of all its Targets."""
    found = await target_client.list(kinds.POD_CHAPERONS, objects.namespace(remote.target) or None)
    return list(filter(remote.is_our_chaperon, found))
