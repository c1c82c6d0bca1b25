"""Says which workload may move a pod next, where the rate of evictions is bounded for all together.

Namespaces take turns, so that nobody's moves wait for all of another's. What cluster-wide policies
ask for goes before that, in turns as well: an administrator drains a cluster while tenants move
pods for reasons of their own. A workload that asks in vain is looked at again when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from vnode.api.listeners import Listeners
from vnode.api.turns import Turns
from vnode.planning.policy import Policy
from vnode.planning.workload_key import PlannedWorkload, namespace_of

ALLOWANCE: Final = 20
"""Evictions in a namespace for which cluster-wide policies go first before others have a turn."""


class _MoveLane(NamedTuple):
    """Workloads that wait for the same turn."""

    namespace: str
    is_cluster_wide: bool
    """Whether their policies are."""


class MoveTurns:
    """The workloads that wait for their turn, in the order in which they asked."""

    def __init__(self, waited: Callable[[str, float], None] = lambda _name, _seconds: None) -> None:
        """Call `waited` with the namespace of each turn, and the seconds that it was waited for."""
        self._waited = waited
        self._since: dict[PlannedWorkload, float] = {}  # when (monotonic) those of `_waits` asked
        self._turns: Turns[_MoveLane] = Turns(ALLOWANCE)
        self._lanes: dict[_MoveLane, dict[PlannedWorkload, None]] = {}  # none empty
        self._waits: dict[PlannedWorkload, _MoveLane] = {}
        self._asked: set[PlannedWorkload] = set()  # of those that are being looked at
        self._listeners: Listeners[PlannedWorkload, float] = Listeners()

    def subscribe(self, wake: Callable[[PlannedWorkload, float], None]) -> None:
        """Call `wake` with a workload that is next, and in how many seconds to look at it."""
        self._listeners.add(wake)

    def ask(self, key: PlannedWorkload, policy: Policy, wait: float, now: float = 0.0) -> bool:
        """Tell whether it is a workload's turn; `wait` is when the next eviction may be.

        If it is not, the workload waits, and keeps its place when it asks again.
        """
        lane = _lane_of(key, policy)
        if self._waits.get(key) != lane:
            self.leave(key)
            self._waits[key] = lane
            self._since[key] = now
            self._lanes.setdefault(lane, {})[key] = None
            self._turns.wait(lane, 0 if lane.is_cluster_wide else 1)

        if not wait and self._turns.next() == lane:
            self._waited(lane.namespace, now - self._since[key])
            self.leave(key)
            return True

        self._asked.add(key)
        return False

    def end_look(self, key: PlannedWorkload, wait: float) -> None:
        """Note that a workload was looked at; have the one looked at whose turn it is.

        If it has not asked, it has nothing to move, and waits no longer.
        """
        if key in self._asked:
            self._asked.discard(key)
        else:
            self.leave(key)

        lane = self._turns.next()
        if lane is not None:
            self._listeners.call(next(iter(self._lanes[lane])), wait)

    def leave(self, key: PlannedWorkload) -> None:
        """Have a workload wait no longer."""
        lane = self._waits.pop(key, None)
        self._since.pop(key, None)
        if lane is not None:
            waiting = self._lanes[lane]
            del waiting[key]
            if not waiting:
                del self._lanes[lane]
                self._turns.leave(lane)

    def pay(self, key: PlannedWorkload, policy: Policy) -> None:
        """Note that a pod of the workload was evicted, or was to be."""
        self._turns.pay(_lane_of(key, policy), 1)


def _lane_of(key: PlannedWorkload, policy: Policy) -> _MoveLane:
    return _MoveLane(namespace_of(key.workload), not policy.namespace)
