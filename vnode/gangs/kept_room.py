"""Keeps the room of one target for a gang that has waited long: from younger pods. Pure.

Small pods take each place as it becomes free, and a large gang would wait for ever. So the oldest
that has waited too long gets one target, for a while, and then nobody does: a gang that never fits
must not stop others for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import objects, resources
from vnode.api.objects import Object
from vnode.gangs.gang import Gang
from vnode.gangs.membership import GangKey

KEPT_FOR: Final = 600.0
"""Seconds for which room is kept at most, and then for which none is."""


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """What is kept for which gang."""

    key: GangKey
    node: str
    priority: int
    since: str
    """When the oldest of its pods was created."""
    devices: frozenset[str]
    """Pods that want none of these are not in its way; if there are none, all are."""

    def keeps_off(self, pod: Object, requests: Mapping[str, int]) -> bool:
        """Tell whether a pod that is in another gang, or in none, is to leave the room to it."""
        if objects.priority(pod) > self.priority:
            return False

        if objects.created(pod) <= self.since:
            return False

        return not self.devices or not self.devices.isdisjoint(requests)


def keep(gang: Gang, node: str) -> KeptRoom:
    """Return what is kept on the node for a gang."""
    names = {
        name
        for each in gang.waiting().values()
        for name, amount in resources.pod_requests(each.pod).items()
        if amount and resources.is_extended(name)
    }
    return KeptRoom(gang.key, node, gang.members.priority, gang.members.since, frozenset(names))


def oldest(gangs: Iterable[Gang], now: float, after: float) -> Gang | None:
    """Return the gang that has waited longest, if that is too long."""
    waiting = [
        gang
        for gang in gangs
        if gang.complete_since is not None
        and not gang.is_started
        and not gang.place()
        and gang.complete_since + after <= now
    ]
    return min(waiting, key=lambda gang: (gang.complete_since, str(gang.key)), default=None)
