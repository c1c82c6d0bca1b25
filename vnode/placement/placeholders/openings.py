"""Remembers since when placeholders could start: where there is room for pods that overflowed.

A target's scheduler says so: it has found a node for the placeholder, which vnode there refuses it,
or, in targets that run Admiralty or an older vnode, holds for a while. The time begins anew when it
says that there is no room, when the target does not answer, and with each leader.

One place is enough for all placeholders of a workload to say so, as they hold none. While one of
them is tried it has the place, though, and another one that is tried just then says that there is
none. So the time goes on from one to the next: that one ceases to say so means little by itself.

Of one workload there may be thousands. They are kept by workload, so that what is asked about one
looks at no others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from vnode.api import objects, placeholders
from vnode.api.clock import Clock
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.planning.move_policy import TRIED_AGAIN
from vnode.planning.policy import Policies
from vnode.planning.workload_key import workload_of
from vnode.runtime.link import Link

_HANDED_ON: Final = 0.8  # seconds from the answer of one placeholder to that of another


class _Opening(NamedTuple):
    pod: str
    since: float
    workload: str
    """That of the pod when it was last looked at."""


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
        # Node -> UID of a pod; and node and workload -> UIDs, the first first. No empty ones.
        self._openings: dict[str, dict[str, _Opening]] = {}
        self._groups: dict[tuple[str, str], dict[str, None]] = {}
        # Node -> workload -> when a placeholder of it ceased to be able to start there, and since
        # when one could then; the oldest first, and none for longer than that means anything.
        self._refuted: dict[str, dict[str, _Refutation]] = {}
        self._changed: Listeners[str] = Listeners()

    def since(self, workload: str, node: str) -> float | None:
        """Return since when (monotonic) a placeholder of a workload could start there; or None."""
        here = self._openings.get(node, {})
        valid = (
            here[uid].since
            for uid in self._groups.get((node, workload), ())
            if self._is_of(workload, node, uid, here[uid].pod)
        )
        return next(valid, None)

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
        here, workload = self._openings.get(node, {}), self._workload(pod)
        if could_start and uid not in here:
            opening = _Opening(objects.key(pod), self._begins(node, workload), workload)
            self._keep(node, uid, opening)
            self._notify(opening.pod)
        elif could_start is False:
            if answers and uid in here and workload:
                self._refute(node, workload, here[uid].since)

            self.forget(node, uid)
        elif uid in here and here[uid].workload != workload:
            opening = self._release(node, uid)._replace(workload=workload)
            self._keep(node, uid, opening)

    def forget(self, node: str, uid: str) -> None:
        """Forget a placeholder."""
        if uid in self._openings.get(node, ()):
            self._notify(self._release(node, uid).pod)

    def _keep(self, node: str, uid: str, opening: _Opening) -> None:
        self._openings.setdefault(node, {})[uid] = opening
        self._groups.setdefault((node, opening.workload), {})[uid] = None

    def _release(self, node: str, uid: str) -> _Opening:
        opening = self._openings[node].pop(uid)
        if not self._openings[node]:
            del self._openings[node]

        group = self._groups[node, opening.workload]
        del group[uid]
        if not group:
            del self._groups[node, opening.workload]

        return opening

    def _refute(self, node: str, workload: str, since: float) -> None:
        now, known = self._clock.monotonic(), self._refuted.setdefault(node, {})
        known.pop(workload, None)
        known[workload] = _Refutation(now, since)
        while now - known[oldest := next(iter(known))].at > TRIED_AGAIN:
            del known[oldest]

    def _begins(self, node: str, workload: str) -> float:
        """Return since when pods of a workload could start where one can now."""
        now = self._clock.monotonic()
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
