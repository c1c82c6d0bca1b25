"""Chooses one target for all pods of a gang, in the scheduling cycle of one of them.

The plugins have said where that one could go. Of these targets, one is chosen that has room for
enough of them at once: first those where they fit for sure, then those where they may, and those
that may grow for them last. All are promised that room before anybody looks at what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from vnode.api import objects, resources
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.gangs import deciding
from vnode.gangs.gang import Gang
from vnode.gangs.room import GangRoom
from vnode.gangs.table import Gangs
from vnode.pods.source.gang_room import GangRooms
from vnode.runtime.links import Links
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.result import CycleResult, ScoredNode
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status, unresolvable, unschedulable

GANGS: Final = "Gangs"
"""The plugin in whose name targets without room for a gang are rejected."""

ELSEWHERE: Final = "GangElsewhere"
"""Name in place of a plugin's for the queue: the gang is tried in another target."""

GROWTH: Final = 600.0
"""Seconds for which a gang waits in a target that may grow for it."""

MOST_LOOKED_AT: Final = 3_000
"""Kinds of pods on rows of nodes for which room is looked for in one cycle: 40 to 80 ms, on a slow
machine. For pods that are all alike it is 256 rows in each of eleven targets."""

TOLD: Final = 10.0
"""Seconds for which pods of a gang are told the same about a target without room."""


_LATER: Final = "whether it has room for the gang is looked at next"


class GangChooser:
    """Chooses targets for gangs of which no pod is bound."""

    def __init__(
        self,
        gangs: Gangs,
        rooms: GangRooms,
        assumptions: Assumptions,
        queue: SchedulingQueue,
        links: Links,
        clock: Clock,
    ) -> None:
        self._gangs = gangs
        self._rooms = rooms
        self._assumptions = assumptions
        self._queue = queue
        self._links = links
        self._clock = clock
        # By node: gangs that have members, are tried there and are not committed; none empty.
        self._incomplete: dict[str, set[Gang]] = {}

    def choose(self, gang: Gang, uid: str, result: CycleResult, snapshot: Snapshot) -> CycleResult:
        """Choose the target for all of a gang after the cycle of its pod `uid`, or say why not."""
        minimum = self._gangs.minimum(gang) or 1
        statuses = dict(result.statuses)
        able: list[tuple[tuple[bool, bool, int], ScoredNode]] = []
        places: dict[str, int] = {}
        left, last, is_partial = MOST_LOOKED_AT, "", False
        for rank, scored in _by_turns(gang, [*result.feasible, *_growing(result, snapshot)]):
            if why := self._vain(gang, scored.name, result.state):
                statuses[scored.name] = _full(why)
                continue

            cost = self._rooms.cost(gang, scored.node)
            if is_partial or (cost > left < MOST_LOOKED_AT):
                is_partial = True
                statuses[scored.name] = _full(gang.told.get(scored.name, (_LATER, 0.0))[0])
                continue

            left, last = left - cost, scored.name
            room = self._rooms.of(gang, minimum, scored.node)
            places[scored.name] = room.place
            if why := self._refusal(gang, scored.name, room, result.state):
                statuses[scored.name] = _full(why)
            else:
                able.append(((room.grows, not room.is_sure, rank), scored))

        gang.looked_at = last if is_partial else ""
        if is_partial:
            result.state.retry_by(self._clock.monotonic())

        if not able:
            gang.best_node = _best(gang, minimum, places, result, snapshot)
            self._queue.soon(uid)
            why_all = unschedulable("no target has room for the gang").with_plugin(GANGS)
            return CycleResult(why_all, (), statuses, (), result.excluded, result.state)

        (grows, *_), chosen = min(able, key=lambda each: each[0])
        self._try(gang, chosen.name, uid, grows=grows)
        other = elsewhere(gang, chosen.name, snapshot)
        others = {node.name: other for node in snapshot.nodes if node.name != chosen.name}
        return CycleResult(SUCCESS, (chosen,), others, (), frozenset(others), result.state)

    def ended(self, gang: Gang) -> None:
        """Note that a gang is no longer incomplete in its target; call it before it leaves that."""
        tried = self._incomplete.get(gang.target, set())
        tried.discard(gang)
        if not tried:
            self._incomplete.pop(gang.target, None)

    def _vain(self, gang: Gang, node: str, state: CycleState) -> str:
        """Return why a target is left alone for now, after an earlier try; "" if it is not."""
        vain, now = gang.vain.get(node), self._clock.monotonic()
        if vain is not None and now < vain.until:
            state.retry_by(vain.until)
            return vain.reason

        return ""

    def _refusal(self, gang: Gang, node: str, room: GangRoom, state: CycleState) -> str:
        """Return why a target is not tried now; "" if it may be."""
        if room.refusal:
            return _told(gang, node, room.refusal, self._clock.monotonic())

        is_guess = room.grows or not room.is_known
        if is_guess and self._is_tried_by_another(gang, node):
            return "another gang is tried there"

        if until := self._left_until(gang, node):
            state.retry_by(until)
            return "candidates of an earlier try are being deleted"

        return ""

    def _try(self, gang: Gang, node: str, by: str, *, grows: bool) -> None:
        """Promise all members their room on a node, and have the others go there, too."""
        self.ended(gang)
        gang.leave()
        gang.target = node
        self._incomplete.setdefault(node, set()).add(gang)
        gang.grows_until = self._clock.monotonic() + GROWTH if grows else 0.0
        self._assumptions.promise(self._going(gang, node, by), node)

    def _going(self, gang: Gang, node: str, by: str) -> Iterable[tuple[Object, Resources | None]]:
        """Have those try the node, too, that wait, and yield each; in slices, so some may go."""
        for uid in tuple(gang.waiting()):
            if gang.target != node:
                return

            if (each := gang.waiting().get(uid)) is None:
                continue

            if uid != by:
                self._queue.activate(uid)

            yield each.pod, each.shape.requests if each.shape is not None else None

    def _left_until(self, gang: Gang, node: str) -> float:
        """Return when to look again whether candidates are gone there; 0 if they are.

        Each member asks, and all candidates are gone through: so what was found holds for a moment.
        """
        now = self._clock.monotonic()
        if now >= gang.leaving.get(node, 0.0):
            is_leaving = self._is_leaving(gang, node)
            gang.leaving[node] = now + deciding.FIRST_REST if is_leaving else 0.0

        return gang.leaving[node]

    def _is_leaving(self, gang: Gang, node: str) -> bool:
        """Tell whether candidates of an earlier try are still going there: they would fail."""
        link = self._links.get(node)
        candidates = (
            link.candidate(objects.key(each.pod), uid) if link is not None else None
            for uid, each in gang.waiting().items()
        )
        return any(found is not None and objects.is_terminating(found) for found in candidates)

    def _is_tried_by_another(self, gang: Gang, node: str) -> bool:
        """Tell whether another gang is incomplete there: it is not known if both fit."""
        tried = self._incomplete.get(node, ())
        return any(other is not gang and not other.is_started for other in tried)


def elsewhere(gang: Gang, node: str, snapshot: Snapshot) -> Status:
    """Return why a pod of a gang goes to no other target than the one behind a node."""
    there = f"the pods of gang {gang.key} go to target {snapshot.target_name(node)}"
    return unresolvable(there).with_plugin(ELSEWHERE)


def _by_turns(gang: Gang, nodes: Sequence[ScoredNode]) -> Iterable[tuple[int, ScoredNode]]:
    """Yield nodes with their rank; first those that were not looked at when there were too many."""
    names = [scored.name for scored in nodes]
    after = names.index(gang.looked_at) + 1 if gang.looked_at in names else 0
    ranked = list(enumerate(nodes))
    return (*ranked[after:], *ranked[:after])


def _growing(result: CycleResult, snapshot: Snapshot) -> Iterable[ScoredNode]:
    """Yield the nodes that have no room for the pod, and whose targets may get some."""
    for name in sorted(result.state.grows - result.excluded):
        node = snapshot.get(name)
        if node is not None and name in result.statuses:
            yield ScoredNode(node, 0, {})


def _best(
    gang: Gang, minimum: int, places: dict[str, int], result: CycleResult, snapshot: Snapshot
) -> str:
    """Return the node whose room is worth keeping: large enough, with most of it free; "" if none.

    A target that is full just now is, too.
    """
    able = {scored.name for scored in result.feasible} | set(result.full())
    first = next(iter(gang.waiting().values()), None)
    requests = resources.pod_requests(first.pod) if first is not None else {}
    wanted = {name: n for name, n in requests.items() if n}

    def rank(node: VirtualNodeInfo) -> tuple[int, int, str]:
        size = resources.times(wanted, node.virtual.allocatable or {}) or 0
        return places.get(node.name, 0), size, node.name

    ranked = [rank(node) for node in snapshot.nodes if node.name in able]
    return max((each for each in ranked if each[1] >= minimum), default=(0, 0, ""))[2]


def _told(gang: Gang, node: str, reason: str, now: float) -> str:
    """Return what users are told; amounts that change all the time would be written to all pods."""
    told, until = gang.told.get(node, ("", 0.0))
    if now >= until:
        told = reason
        gang.told[node] = reason, now + TOLD

    return told


def _full(reason: str) -> Status:
    return unschedulable(reason).with_plugin(GANGS)
