"""Looks after gangs beside scheduling: tells of those that wait, and mends those left halfway.

Pods that are held until their gang is complete say so in their condition PodScheduled. If an agent
ends while the pods of a gang are bound, too few may be: none of these is allowed to run, and the
next agent binds the rest to the same target. If it cannot for a minute, those that are bound are
deleted, for their owner to make them anew. A gang that has waited long gets a target's room kept.
"""

from __future__ import annotations

import logging
from typing import Final

from vnode.api import kinds, objects, permissions
from vnode.api.clock import Clock
from vnode.gangs import deciding, kept_room
from vnode.gangs.gang import Gang
from vnode.gangs.kept_room import KEPT_FOR, KeepingTurns
from vnode.gangs.members import GangMember
from vnode.gangs.membership import GangKey
from vnode.gangs.table import Gangs
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.pods.source.group_reporter import GroupReporter
from vnode.pods.source.pod_groups import PodGroups
from vnode.pods.source.unschedulable_reporter import UnschedulableReporter
from vnode.runtime import supervisor
from vnode.runtime.controller import Controller
from vnode.runtime.links import Links
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.queue import SchedulingQueue
from vnode.telemetry import audit

SETTLING: Final = 2.0
"""Seconds after which pods tell what they wait for: those of one gang are created one by one."""

TOLD_A_SECOND: Final = 50
"""How many pods are told so at most while others are created: each that comes changes it for
all."""

UNFINISHED: Final = 60.0
"""Seconds for which some pods of a gang may be bound that are too few to run."""

SHORT: Final = 30.0
"""Seconds after which pods of a Job start without those that have done their work: others of a new
round would be there by then."""

LOOKED_FOR: Final = 1.0
"""Seconds between two looks at all gangs for one that room is kept for, if it is not the one that
is looked at: thousands may wait, and each would look at all."""

log = logging.getLogger(__name__)


class GangController:
    """Works for one term of a leader; `keep_after` is `gangs.keepRoomAfterSeconds`."""

    def __init__(
        self,
        client: Client,
        gangs: Gangs,
        groups: PodGroups,
        links: Links,
        queue: SchedulingQueue,
        reporter: UnschedulableReporter,
        events: EventRecorder,
        clock: Clock,
        *,
        keep_after: float,
    ) -> None:
        self._client = client
        self._gangs = gangs
        self._groups = groups
        self._links = links
        self._queue = queue
        self._reporter = reporter
        self._events = events
        self._clock = clock
        self._keep_after = keep_after
        self._group_reporter = GroupReporter(client, gangs, groups, links, events, clock)
        self._turns = KeepingTurns()  # of `Gangs.kept`
        self._none_until = 0.0  # until when no gang is looked for that room might be kept for
        self._controller: Controller[GangKey] = Controller(
            "gangs",
            self._reconcile,
            subject=self._subject,
            namespace=lambda key: key.namespace,
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with supervisor.supervise() as tasks:
            self._gangs.subscribe(self._on_gang)
            self._gangs.on_unplaced(self._on_gang)
            self._groups.watch(tasks.keyed(), self._gangs.recheck, self._gangs.keys_of)
            for gang in self._gangs.values():
                self._on_gang(gang)

            await self._controller.run()

    def _on_gang(self, gang: Gang) -> None:
        held = 0 if gang.is_released else len(gang.waiting())
        self._controller.add_after(gang.key, SETTLING + held / TOLD_A_SECOND)

    def _subject(self, key: GangKey) -> audit.Subject:
        """Return one of its pods, for which the others wait."""
        gang = self._gangs.get(key)
        members = list(gang.members.values()) if gang is not None else []
        return audit.of(kinds.PODS, members[0].pod) if members else audit.agent(key)

    async def _reconcile(self, key: GangKey) -> float | None:
        self._end_kept_room()
        gang = self._gangs.get(key)
        if gang is None:
            self._group_reporter.forget(key)
            return None

        await self._tell(gang)
        reported = await self._group_reporter.report(gang)
        waits = [reported, self._spend(gang), await self._mend(gang), self._keep_room(gang)]
        return min((wait for wait in waits if wait is not None), default=None)

    async def _tell(self, gang: Gang) -> None:
        """Tell on pods that are held what they wait for."""
        standing = self._gangs.standing(gang)
        for each in list(gang.waiting().values()):
            if why := deciding.hold(gang, each, standing):
                await self._reporter.tell(each.pod, why)

    def _spend(self, gang: Gang) -> float | None:
        """Let pods start without those of their Jobs that have done their work."""
        if gang.short_since is None or gang.is_spent:
            return None

        left = gang.short_since + SHORT - self._clock.monotonic()
        if left > 0:
            return left

        log.info("what is left of gang %s starts without those that have finished", gang.key)
        self._gangs.spend(gang)
        return None

    async def _mend(self, gang: Gang) -> float | None:
        """Delete pods that are bound and cannot run; return when to look again."""
        if gang.unfinished_since is None:
            return None

        left = gang.unfinished_since + UNFINISHED - self._clock.monotonic()
        if left > 0:
            return left

        for each in list(gang.bound().values()):
            if self._never_ran(each):
                await self._end(gang, each)

        return UNFINISHED

    def _never_ran(self, each: GangMember) -> bool:
        """Tell whether it is known that a pod was not allowed to run."""
        link = self._links.get(each.node)
        if link is None or not link.synced or not link.answers:
            return False

        candidate = link.candidate(objects.key(each.pod), objects.uid(each.pod))
        return candidate is not None and not permissions.is_allowed(candidate)

    async def _end(self, gang: Gang, each: GangMember) -> None:
        why = (
            f"too few pods of gang {gang.key} have found a place in target "
            f"{self._target(each.node)} beside this one, which has not run; deleting it, for its "
            "owner to replace it"
        )
        log.info("deleting %s: %s", objects.key(each.pod), why)
        self._events.event(about(each.pod), WARNING, "GangIncomplete", why)
        await self._client.discard(kinds.PODS, each.pod)

    def _target(self, node: str) -> str:
        link = self._links.get(node)
        return str(link.target) if link is not None else node

    def _keep_room(self, gang: Gang) -> float | None:
        """Keep the room of a target for the gang that has waited longest, if that is too long."""
        if not self._keep_after or gang.is_started or not gang.waiting():
            return None

        if gang.complete_since is None:
            return self._keep_after  # it is not complete, or has not been tried yet

        now = self._clock.monotonic()
        if (left := gang.complete_since + self._keep_after - now) > 0:
            return left

        if self._gangs.kept is not None:
            return max(self._turns.left(now), 1.0)

        if wait := self._turns.wait(gang.key.namespace, now):
            return wait

        is_one = gang.best_node and not gang.place()
        if not is_one and now < self._none_until:
            return self._keep_after  # there was none a moment ago

        chosen = kept_room.oldest(self._gangs.values(), now, self._keep_after, self._turns)
        if chosen is None:
            self._none_until = now + LOOKED_FOR
            return self._keep_after

        kept = self._gangs.kept = kept_room.keep(chosen, chosen.best_node)
        self._turns.begin(kept.key.namespace, now)
        log.info("the room of %s is kept for gang %s", kept.node, kept.key)
        return KEPT_FOR

    def _end_kept_room(self) -> None:
        """Keep it no longer once the gang has its place, is gone, or has had its time."""
        kept = self._gangs.kept
        if kept is None:
            return

        gang = self._gangs.get(kept.key)
        waits = gang is not None and gang.complete_since is not None and not gang.is_started
        now = self._clock.monotonic()
        if waits and self._turns.left(now):
            return

        self._gangs.kept = None
        self._turns.end(now, has_started=gang is not None and gang.is_started)
        self._queue.move(ClusterEvent(EventKind.TARGET_FREE, kept.node))
