"""Keeps the room of one target for a gang that has waited long: from younger pods. Pure.

Small pods take each place as it becomes free, and a large gang would wait for ever. So the oldest
that has waited too long gets one target, for a while, and then nobody does for as long: gangs that
never fit must not stop others for good, however many there are, and whatever becomes of them
meanwhile. Namespaces take turns, and none has more than half of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import objects, resources
from vnode.api.objects import Object
from vnode.gangs.gang import Gang
from vnode.gangs.membership import GangKey

KEPT_FOR: Final = 600.0
"""Seconds for which room is kept at most."""

_REMEMBERED: Final = 3600.0
"""Seconds for which it is known which namespaces had their turn."""


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


class KeepingTurns:
    """Says who may have room kept, and since when nobody may; times are the clock's monotonic."""

    def __init__(self) -> None:
        self._namespace = ""  # for which room is kept; "" for none
        self._since = 0.0
        self._none_until = 0.0
        # Namespace -> when room was last kept for it, and until when none is. Those of whom there
        # is nothing to remember may be absent.
        self._had: dict[str, tuple[float, float]] = {}

    def begin(self, namespace: str, now: float) -> None:
        """Note that room is kept for a gang of that namespace from now on."""
        self._namespace, self._since = namespace, now

    def left(self, now: float) -> float:
        """Return for how many seconds more it may be kept."""
        return max(0.0, self._since + KEPT_FOR - now)

    def end(self, now: float, *, has_started: bool) -> None:
        """Note that it is kept no longer, perhaps since its gang has started."""
        until = now + min(now - self._since, KEPT_FOR)
        self._had[self._namespace] = now, until
        self._namespace = ""
        if not has_started:
            self._none_until = until

        self._had = {n: had for n, had in self._had.items() if had[0] + _REMEMBERED > now}

    def wait(self, namespace: str, now: float) -> float:
        """Return the seconds until room may be kept for gangs of a namespace; 0 for now."""
        _last, until = self._had.get(namespace, (0.0, 0.0))
        return max(0.0, until - now, self._none_until - now)

    def rank(self, namespace: str) -> float:
        """Return what orders namespaces: those go first that had their turn longest ago."""
        return self._had.get(namespace, (-math.inf, 0.0))[0]


def oldest(gangs: Iterable[Gang], now: float, after: float, turns: KeepingTurns) -> Gang | None:
    """Return the gang that has waited longest of the namespace whose turn it is, if that is too
    long, and some target is worth keeping for it."""
    waiting = [
        gang
        for gang in gangs
        if gang.complete_since is not None
        and gang.best_node
        and not gang.is_started
        and not gang.place()
        and gang.complete_since + after <= now
        and not turns.wait(gang.key.namespace, now)
    ]
    return min(
        waiting,
        key=lambda gang: (turns.rank(gang.key.namespace), gang.complete_since, str(gang.key)),
        default=None,
    )
