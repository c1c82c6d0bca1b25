"""Remembers since when placeholders could start: where there is room for pods that overflowed.

A target's scheduler says so: it has found a node for the placeholder, which vnode there refuses it,
or, in targets that run Admiralty or an older vnode, holds for a while. The time begins anew when it
says that there is no room, when the target does not answer, and with each leader.

One place is enough for all placeholders of a workload to say so, as they hold none. While one of
them is tried it has the place, though, and another one that is tried just then says that there is
none. So the time goes on from one to the next: that one ceases to say so means little by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from vnode.api import objects, placeholders
from vnode.api.clock import Clock
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.planning.policy import Policies
from vnode.planning.workload_key import workload_of
from vnode.runtime.links import Link

_HANDED_ON: Final = 0.8  # seconds from the answer of one placeholder to that of another


class _Opening(NamedTuple):
    pod: str
    since: float


class _Refutation(NamedTuple):
    at: float
    since: float


class PlaceholderOpenings:
    """Implements `Openings` of placement policies by what targets say of placeholders.

    `find` returns the proxy pod of a key.
    """

    def __init__(
        self, find: Callable[[str], Object | None], policies: Policies, clock: Clock
    ) -> None:
        self._find = find
        self._policies = policies
        self._clock = clock
        self._openings: dict[str, dict[str, _Opening]] = {}  # node -> UID of a pod; no empty dicts
        # Node -> workload -> when a placeholder of it ceased to be able to start there, and since
        # when one could then.
        self._refuted: dict[str, dict[str, _Refutation]] = {}
        self._changed: Listeners[str] = Listeners()

    def since(self, workload: str, node: str) -> float | None:
        """Return since when (monotonic) a placeholder of a workload could start there; or None."""
        found = (
            opening.since
            for uid, opening in self._openings.get(node, {}).items()
            if self._is_of(workload, node, uid, opening.pod)
        )
        return min(found, default=None)

    def refuted(self, workload: str, node: str) -> float | None:
        """Return when (monotonic) a placeholder of a workload last ceased to be able to start."""
        found = self._refuted.get(node, {}).get(workload)
        return None if found is None else found.at

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with a workload of which a placeholder could start, or no longer could."""
        self._changed.add(changed)

    def observe(self, link: Link, pod: Object, chaperon: Object | None) -> None:
        """Take note of what a target says of a placeholder; None if it is gone."""
        node, uid = link.node_name, objects.uid(pod)
        answers = link.health.healthy and chaperon is not None
        could_start = (
            placeholders.could_start(chaperon) if answers and chaperon is not None else False
        )
        here = self._openings.get(node, {})
        if could_start and uid not in here:
            opening = _Opening(objects.key(pod), self._begins(node, pod))
            self._openings.setdefault(node, here)[uid] = opening
            self._notify(opening.pod)
        elif could_start is False:
            if answers and uid in here and (workload := self._workload(pod)):
                refutation = _Refutation(self._clock.monotonic(), here[uid].since)
                self._refuted.setdefault(node, {})[workload] = refutation

            self.forget(node, uid)

    def forget(self, node: str, uid: str) -> None:
        """Forget a placeholder."""
        here = self._openings.get(node, {})
        opening = here.pop(uid, None)
        if opening is not None:
            if not here:
                del self._openings[node]

            self._notify(opening.pod)

    def _begins(self, node: str, pod: Object) -> float:
        """Return since when pods of the same workload could start where this one can now."""
        now, workload = self._clock.monotonic(), self._workload(pod)
        known = self.since(workload, node)
        before = self._refuted.get(node, {}).get(workload)
        if known is None and before is not None and now - before.at <= _HANDED_ON:
            known = before.since

        return now if known is None else known

    def _notify(self, key: str) -> None:
        """Tell of the workload of a pod; who listens hears elsewhere of one that is gone."""
        if (pod := self._find(key)) is not None and (workload := self._workload(pod)):
            self._changed.call(workload)

    def _workload(self, pod: Object) -> str:
        policy = self._policies.of(pod)
        return "" if policy is None else workload_of(pod, policy.group_by)

    def _is_of(self, workload: str, node: str, uid: str, key: str) -> bool:
        pod = self._find(key)
        if pod is None or objects.uid(pod) != uid or node not in placeholders.of(pod):
            return False

        return self._workload(pod) == workload
