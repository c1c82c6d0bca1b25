"""Places gangs: chooses one target for all pods of a gang, and has them bound there, or none.

A member that is popped from the queue chooses for all: a target that has room for enough of them at
once (`gang_choice`). All are promised that room before anybody looks at what is left, and go into
candidate phases for that target only. Each that has a place there waits (`at_gate`) until enough
have one. As soon as too few can get one, all candidates there are deleted, and the next target is
tried: a gang holds places in one target at a time.

Once enough are bound, each pod of the gang counts for itself, and goes where the others are.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.gangs import deciding, marks
from vnode.gangs.deciding import NextStep
from vnode.gangs.gang import FailedTry, Gang
from vnode.gangs.table import Gangs
from vnode.planning.policy import Policies
from vnode.pods.source import gang_choice
from vnode.pods.source.attempt import Attempt
from vnode.pods.source.gang_choice import GangChooser
from vnode.pods.source.gang_room import GangRooms
from vnode.runtime.links import Links
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cache import Cache
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.framework import Framework
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.result import CycleResult
from vnode.scheduling.snapshot import Snapshot
from vnode.scheduling.status import Status, unresolvable, unschedulable

_UNREAD: Final = "what the pods of its gang ask for is looked at first"

log = logging.getLogger(__name__)


class GangGate(enum.Enum):
    """What a member does that has a place in the target."""

    PASS = "pass"  # noqa: S105 - no password
    WAIT = "wait"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class StrayCandidate:
    """A member whose candidate is to be deleted, beside any attempt."""

    key: str
    uid: str
    node: str


class GangRounds:
    """Decides about gangs for the scheduler of a term; `spread` returns a number from 0 to 1.

    `follow` has to be called before proxies are scheduled.
    """

    def __init__(
        self,
        gangs: Gangs,
        framework: Framework,
        cache: Cache,
        assumptions: Assumptions,
        queue: SchedulingQueue,
        policies: Policies,
        links: Links,
        constraints: Callable[[Object], Object | None],
        is_overridden: Callable[[Object, str], bool],
        clock: Clock,
        spread: Callable[[], float],
    ) -> None:
        self._gangs = gangs
        self._framework = framework
        self._cache = cache
        self._queue = queue
        self._policies = policies
        self._clock = clock
        self._spread = spread
        self._rooms = GangRooms(framework, cache, constraints, is_overridden)
        self._chooser = GangChooser(gangs, self._rooms, assumptions, queue, links, clock)
        self._wake: Callable[[str], bool] = lambda _uid: False
        self._delete: Callable[[StrayCandidate], None] = lambda _stray: None

    def follow(self, wake: Callable[[str], bool], delete: Callable[[StrayCandidate], None]) -> None:
        """Take what wakes the attempt of a UID, if there is one, and what deletes a candidate."""
        self._wake, self._delete = wake, delete
        self._gangs.subscribe(self._on_gang)
        for gang in self._gangs.values():
            self._on_gang(gang)

    def of(self, uid: str) -> Gang | None:
        """Return the gang of a pod; None for almost all."""
        return self._gangs.of(uid) if self._gangs else None

    def mark(self, pod: Object) -> str:
        """Return the annotation for the candidates of a pod, "" if it is in no gang."""
        gang = self.of(objects.uid(pod))
        minimum = self._gangs.minimum(gang) if gang is not None else None
        return marks.text(gang, minimum) if gang is not None and minimum else ""

    def cycle(self, gang: Gang, queued: QueuedPod, snapshot: Snapshot) -> CycleResult:
        """Run the scheduling cycle of a member: in the target of the others, or choose one.

        Nothing is decided while it is still to be read what the gang's pods ask for.
        """
        pod = queued.pod
        if why := self._gangs.hold(pod) or self._divided(pod):
            return _nowhere(snapshot, unresolvable(why).with_plugin(gang_choice.GANGS))

        if gang.complete_since is None:
            gang.complete_since = self._clock.monotonic()

        if node := gang.place():
            elsewhere = gang_choice.elsewhere(gang, node, snapshot)
            return self._framework.schedule_on(pod, snapshot, node, elsewhere)

        if not self._rooms.read(gang):
            unread = unschedulable(_UNREAD).with_plugin(gang_choice.GANGS)
            return replace(_nowhere(snapshot, unread), is_undecided=True)

        if why := self._rooms.refusal(gang):
            return _nowhere(snapshot, unresolvable(why).with_plugin(gang_choice.GANGS))

        result = self._framework.schedule(pod, snapshot)
        return self._chooser.choose(gang, queued.uid, result, snapshot)

    def at_gate(self, uid: str, node: str) -> GangGate:
        """Tell what a member does whose candidate has a place on the node."""
        gang = self.of(uid)
        if gang is None:
            return GangGate.PASS

        if gang.place() != node:
            return GangGate.LEAVE

        if gang.is_committed or self._gangs.is_started(gang):
            return GangGate.PASS

        if not gang.has_place(uid):
            return GangGate.WAIT  # it is being deleted

        minimum = self._gangs.minimum(gang)
        if minimum is None or self._step(gang, minimum) is not NextStep.BIND:
            return GangGate.WAIT

        log.info("gang %s starts on %s with %d pods", gang.key, node, len(gang.ready))
        self._chooser.ended(gang)
        gang.is_committed = True
        gang.vain.clear()
        for each in gang.ready:
            self._wake(each)

        return GangGate.PASS

    def is_left(self, uid: str, node: str) -> bool:
        """Tell whether the gang of a member has given the target up."""
        gang = self.of(uid)
        return gang is not None and gang.place() != node

    def not_ready(self, uid: str) -> None:
        """Note that a member has no place now."""
        if (gang := self.of(uid)) is not None:
            gang.ready.discard(uid)

    def ended(self, attempt: Attempt, result: CycleResult, reasons: dict[str, str]) -> None:
        """Note that the attempt of a pod has ended without a place; give the target up if enough
        have."""
        gang = self.of(attempt.uid)
        node = gang.place() if gang is not None else ""
        if gang is None or not node or attempt.ranked not in ((), (node,)):
            return

        status = result.statuses.get(node)
        told = reasons.get(node) or (status.message if status is not None else "")
        gang.has_none(attempt.uid, told or "no place was found")
        self._settle(gang)

    def failed(self, attempt: Attempt, result: CycleResult, why: str) -> None:
        """Note that the attempt of a pod has failed; it is made again."""
        if attempt.in_gang:
            self.ended(attempt, result, dict.fromkeys(attempt.ranked, why))

    def unplaced(self, uid: str, why: str) -> None:
        """Note what a member was told of why no target takes it."""
        self._gangs.saw_unplaced(uid, why)

    def explanation(self, uid: str, node: str) -> str:
        """Return why the gang of a pod has given a target up; "" if it has not."""
        gang = self.of(uid)
        vain = gang.vain.get(node) if gang is not None else None
        return vain.reason if vain is not None else ""

    def _divided(self, pod: Object) -> str:
        policy = self._policies.of(pod) if self._policies else None
        if policy is None or not policy.is_divided:
            return ""

        return (
            f"{policy.name} divides pods among clusters, and a gang starts in one: give the policy "
            "mode Single or Any"
        )

    def _on_gang(self, gang: Gang) -> None:
        """Look at a gang that has other members, or another group, than before."""
        if not gang.members:
            self._chooser.ended(gang)

        standing, now = self._gangs.standing(gang), self._clock.monotonic()
        is_started = self._gangs.is_started(gang)
        is_open = is_started or (
            standing.minimum is not None and gang.members.present >= standing.minimum
        )
        if is_open and not gang.is_released:
            for uid in gang.waiting():
                self._queue.release(uid)
                self._queue.requeue(uid)

        gang.is_released = is_open
        if not is_open or is_started:
            gang.complete_since = None

        if not deciding.is_short(gang, standing.minimum):
            gang.short_since = None
        elif gang.short_since is None:
            gang.short_since = now

        if gang.bound() and not is_started:
            gang.unfinished_since = gang.unfinished_since or now
        else:
            gang.unfinished_since = None

        self._settle(gang)

    def _settle(self, gang: Gang) -> None:
        minimum = self._gangs.minimum(gang)
        is_tried = gang.target and not gang.bound() and not gang.is_started
        if is_tried and minimum and self._step(gang, minimum) is NextStep.LEAVE:
            self._leave(gang)

    def _step(self, gang: Gang, minimum: int) -> NextStep:
        return deciding.next_step(gang, minimum, self._clock.monotonic())

    def _leave(self, gang: Gang) -> None:
        """Give back what the gang has in the target that is tried; try others after that."""
        node, now = gang.target, self._clock.monotonic()
        target = self._cache.target_name(node)
        reason = deciding.tally(gang, target)
        log.info("gang %s leaves %s: %s", gang.key, node, reason)
        count = gang.vain[node].count + 1 if node in gang.vain else 1
        gang.vain[node] = FailedTry(reason, count, now + deciding.rest(count, self._spread()))
        self._chooser.ended(gang)
        gang.leave()
        for uid, each in gang.members.items():
            if not each.node and not self._wake(uid):
                self._delete(StrayCandidate(objects.key(each.pod), uid, node))

        for uid in gang.waiting():
            self._queue.activate(uid)


def _nowhere(snapshot: Snapshot, why: Status) -> CycleResult:
    statuses = {node.name: why for node in snapshot.nodes}
    return CycleResult(why, (), statuses, (), frozenset(statuses), CycleState())
