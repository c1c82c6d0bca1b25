"""What a source has in the cluster behind a Target that goes: chaperons, and what followed pods.

Several Targets may lead to one cluster. Chaperons say which of them they came by, so those of a
Target that stays are not touched. Copies do not say it, as all pods of a namespace share them: they
go from where none of our pods are left.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError, VnodeError
from vnode.api.identity import Identity
from vnode.api.objects import Object, Objects
from vnode.cli.removing import waiting
from vnode.cli.removing.followed import remove_copies
from vnode.cli.removing.reporting import Report
from vnode.insight.collecting import connected
from vnode.kube.client import Client

_GREETING: Final = 6.0  # seconds for a target to answer


@dataclass(frozen=True, slots=True)
class Share:
    """What this cluster sent by one Target; `ending` has the keys of all that go with it."""

    target: Object
    me: Identity
    ending: frozenset[str]

    @property
    def name(self) -> str:
        """The key of the Target."""
        return objects.key(self.target)

    @property
    def command(self) -> str:
        """What ends it in the target, by hand."""
        namespace = objects.namespace(self.target)
        where = f"-n {namespace}" if namespace else "-A"
        return f"kubectl delete podchaperons {where} -l {self.me.selector}"

    def owns(self, chaperon: Object) -> bool:
        """It is ours, and not known to be another Target's."""
        return self.is_ours(chaperon) and self._sender(chaperon) == self.name

    def is_anothers(self, chaperon: Object) -> bool:
        """It is ours, of a Target that is not about to go."""
        return self.is_ours(chaperon) and self._sender(chaperon) not in self.ending

    def is_ours(self, obj: Object) -> bool:
        """By the UID alone: a chaperon or copy that does not bear it may be anybody's."""
        return objects.annotations(obj).get(keys.PARENT_CLUSTER_UID) == self.me.uid

    def _sender(self, chaperon: Object) -> str:
        return objects.annotations(chaperon).get(keys.TARGET, self.name)


async def end(client: Client, share: Share, seconds: float, report: Report) -> None:
    """Delete our chaperons in a target, and wait for their end; where no agent does it."""
    namespace = objects.namespace(share.target) or None
    try:
        async with (
            asyncio.timeout(_GREETING + 2 * seconds),
            connected(client, share.target) as far,
        ):
            async with asyncio.timeout(_GREETING):
                found = list(filter(share.owns, await _ours(far, share)))

            for chaperon in found:
                await far.discard(kinds.POD_CHAPERONS, chaperon)

            left = await waiting.until_gone(
                far, kinds.POD_CHAPERONS, share.owns, seconds, namespace=namespace
            )
            if found:
                ended = len(found) - len(left)
                report.say(f"target {share.name}: {ended} of {len(found)} chaperons ended")

            await _settle(far, share, report)
    except (VnodeError, TimeoutError) as error:
        _note_unreachable(share, error, report)


async def look(client: Client, share: Share, report: Report, count: int) -> None:
    """Say what the agent had to leave in a target, of `count` pods; what followed them goes."""
    try:
        async with asyncio.timeout(_GREETING), connected(client, share.target) as far:
            await _settle(far, share, report)
    except (VnodeError, TimeoutError) as error:
        if count:
            _note_unreachable(share, error, report)


def _note_unreachable(share: Share, error: BaseException, report: Report) -> None:
    """Nobody knows what runs there."""
    why = str(error) or "no answer"
    if isinstance(error, ConfigError):
        why = f"its credentials cannot be used here: {error}"

    report.left.append(
        f"target {share.name} was not reached ({why}): delegates that run there run on until "
        f"there, {share.command}"
    )


async def _settle(far: Client, share: Share, report: Report) -> None:
    """Say what is left there; if none of it is of this Target, copies that no pod uses go."""
    present = await _ours(far, share)
    left = list(filter(share.owns, present))
    others = list(filter(share.is_anothers, present))
    also = " (which ends those of other Targets, too)" if others else ""
    if left:
        report.left.append(
            f"target {share.name}: {len(left)} delegates have not ended: {share.command}{also}"
        )
    else:
        await _take_along(far, share, {objects.namespace(chaperon) for chaperon in present}, report)

    if others:
        report.left.append(
            f"target {share.name}: {len(others)} delegates came there by other Targets of this "
            "cluster, and run on"
        )


async def _take_along(far: Client, share: Share, inhabited: set[str], report: Report) -> None:
    """Copies go from all namespaces but these; tokens go from there, too: each has its Target."""

    def is_meant(copy: Object) -> bool:
        is_token = objects.annotations(copy).get(keys.TARGET) == share.name
        return share.is_ours(copy) and (is_token or objects.namespace(copy) not in inhabited)

    namespace, where = objects.namespace(share.target) or None, f"target {share.name}: "
    await remove_copies(far, namespace, is_meant, report, where=where)


async def _ours(far: Client, share: Share) -> Objects:
    """The chaperons of this cluster, of all its Targets."""
    found = await far.list(kinds.POD_CHAPERONS, objects.namespace(share.target) or None)
    return list(filter(share.is_ours, found))
