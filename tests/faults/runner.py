"""Step after step: act and break, mend, settle, check; until the time is up or something is wrong.

What a run says, it says as it happens: seed, actions, faults, how long it took to settle. After a
violation the run ends, so that the fleet can be looked at as it is.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from tests.faults import breaking, devices, drawing, rules, snapshot, timing
from tests.faults.acting import Actor, remove_all
from tests.faults.cloud import CloudController
from tests.faults.harness import CLUSTERS, Harness, agents_of
from tests.faults.hostility import Hostility
from tests.faults.placement_acts import PolicyAct
from tests.faults.placements import Placements
from tests.faults.plan import (
    ENDING,
    SOURCE,
    TARGETS,
    Action,
    Fault,
    Step,
    Verb,
    Wish,
    WorkloadKind,
)
from tests.faults.replacing import ReplaceAct, Replacer
from tests.faults.snapshot import FleetSnapshot, Violation
from tests.faults.target_controllers import TargetControllers, not_injected
from tests.faults.targets import NAMESPACE
from tests.faults.watching import Watcher
from vnode.api import kinds, objects
from vnode.api.errors import VnodeError

SETTLED = 180.0  # seconds within which all must be well again
_QUIET = 1.5  # seconds without an event after which what is seen is believed


@dataclass(slots=True)
class Tally:
    """What a run did."""

    steps: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    settled: list[float] = field(default_factory=list)  # seconds, a value for each step


class Runner:
    """One run; `say` is given each line of its story."""

    def __init__(
        self,
        harness: Harness,
        watcher: Watcher,
        dice: random.Random,
        say: Callable[[str], None],
        hostile: random.Random,
        planning: random.Random,
        replacing: random.Random,
        deleting: random.Random,
        cleaning: random.Random,
    ) -> None:
        self.tally = Tally()
        self._harness = harness
        self._watcher = watcher
        self._dice = dice
        self._say = say
        self._wish = Wish()
        self.actor = Actor(harness, lambda: watcher.snapshot(self._wish))
        watcher.results.deleted = self.actor.deleted_chaperons
        self.hostility = Hostility(
            harness, hostile, lambda: list(watcher.snapshot(self._wish).proxies.values())
        )
        self.placements = Placements(harness, planning)
        self.replacer = Replacer(harness, replacing, watcher.remove)
        self.cloud = CloudController(harness, deleting)
        self.target_controllers = TargetControllers(harness, cleaning)

    async def run(self, seconds: float, longest: float) -> list[Violation]:
        """Take steps for that many seconds; return the violations; there should be none."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.tally.steps += 1
            if found := await self._step(longest):
                await self._tell_events(found)
                return found

        return []

    async def begin(self) -> list[Violation]:
        """Remove what an earlier run left in this fleet; return what is wrong afterwards."""
        await remove_all(self._harness.source)
        await devices.begin(self._harness)
        await self.target_controllers.begin()
        await self.placements.begin()
        await self.hostility.begin()
        return await self.hostility.end() or await self._settle({})

    async def finish(self) -> list[Violation]:
        """Remove everything: nothing may be left of it anywhere."""
        actions = [Action(Verb.REMOVE, 0, w) for w in self._wish.workloads.values()]
        actions += [Action(Verb.REMOVE_THING, 0, thing=t) for t in self._wish.things.values()]
        self._say("last step: remove everything")
        self._wish = Wish()
        await self.placements.end()
        await asyncio.gather(*(self.actor.act(action) for action in actions))
        return await self._settle({})

    async def _step(self, longest: float) -> list[Violation]:
        agents = agents_of(self._harness.fleet, SOURCE)
        step, wish = drawing.draw(self._dice, self._wish, longest=longest, agents=agents)
        step = replace(step, faults=(*step.faults, *self.cloud.faults(step)))
        acts = self.placements.draw(wish)
        replaced = self.replacer.draw(step, wish)
        self._tell(step, acts, replaced)
        before = self._watcher.snapshot(self._wish)
        ending = step.removed_targets | ({replaced.target} if replaced else set())
        survivors = untouched(before, step, self.placements.movable(acts), ending)
        self._watcher.removed.clear()
        lost = {replaced.target} if replaced and replaced.lost else set()
        self._watcher.forced = step.forced_targets | lost
        self._watcher.history.there = frozenset(
            map(snapshot.virtual_node, step.undisturbed - ending - lost)
        )
        self._watcher.history.replaced = {replaced.target: replaced.other} if replaced else {}
        acted = step.acted_targets | ({replaced.target, replaced.other} if replaced else set())
        with self._trouble(acted):
            return await self._take(step, acts, replaced, wish, survivors, ending)

    async def _take(
        self,
        step: Step,
        acts: list[PolicyAct],
        replaced: ReplaceAct | None,
        wish: Wish,
        survivors: dict[str, str],
        ending: Collection[str],
    ) -> list[Violation]:
        """Return what is wrong after a step: act and break, mend, and settle."""
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._harness.keep(), name="keep")
            hostile = group.create_task(self.hostility.run(), name="hostility")
            cloud = group.create_task(self.cloud.run(step), name="cloud controller")
            cleaning = group.create_task(self.target_controllers.run(), name="cleaning")
            tasks = [
                *(group.create_task(self._act(a, step), name=str(a)) for a in step.actions),
                *(group.create_task(self.placements.act(a), name=str(a)) for a in acts),
                *(group.create_task(self.replacer.act(r), name=str(r)) for r in [replaced] if r),
                *(group.create_task(self._break(f), name=str(f)) for f in step.faults),
            ]
            await asyncio.wait(tasks)
            hostile.cancel()
            cloud.cancel()
            with self._trouble(CLUSTERS):
                await self._harness.heal()
                self._wish = wish
                self._watcher.drained = self.placements.drained()
                await self.actor.leaver.install_again()
                await self.actor.targets.put_back()
                await self.replacer.put_back()

            found = await self.hostility.end() or await self._settle_without(survivors)
            await self.actor.leaver.connect_again()
            found = found or await self._settle(survivors, is_planned=True)
            found = found or await self.cloud.end({*ending, *step.left_targets})
            keeping.cancel()
            cleaning.cancel()

        return found

    async def _settle_without(self, survivors: dict[str, str]) -> list[Violation]:
        """Settle without the targets that were disconnected, if others are left.

        Nothing is asked of those whose removal was a force: what runs there ends when they are
        connected again.
        """
        gone = frozenset(self.actor.leaver.disconnected)
        if not gone or gone >= set(TARGETS):
            return []

        self._say(f"  without {', '.join(sorted(gone))}")
        self._watcher.unasked = gone & self._watcher.forced
        found = await self._settle(survivors)
        self._watcher.unasked = frozenset()
        return found

    def _trouble(self, clusters: Iterable[str]) -> AbstractContextManager[None]:
        """Time no gangs there while something is broken."""
        return self._watcher.gangs.trouble(clusters, time.monotonic)

    async def _break(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        with self._trouble(fault.clusters):
            await breaking.cause(self._harness, replace(fault, at=0.0))

    async def _act(self, action: Action, step: Step) -> None:
        await asyncio.sleep(action.at)
        if action.verb in ENDING:
            self._watcher.remove(action.target)

        target = action.timed_on
        can_start = timing.can_start(target, self._harness.outages, time.monotonic())
        await self.actor.act(action, timed=target in step.undisturbed and can_start)

    def _tell(self, step: Step, acts: list[PolicyAct], replaced: ReplaceAct | None) -> None:
        self._say(f"step {self.tally.steps}")
        for action in step.actions:
            self.tally.actions[action.verb] += 1
            self._say(f"  {action}")

        for act in acts:
            self._say(f"  {act}")

        if replaced is not None:
            self._say(f"  {replaced}")

        for fault in step.faults:
            self.tally.faults[fault.trouble] += 1
            self._say(f"  {fault}")

    async def _settle(
        self, survivors: dict[str, str], *, is_planned: bool = False
    ) -> list[Violation]:
        """Wait until nothing is wrong, or until it is too late; what is wrong then.

        With `is_planned`, pods have to come to where placement policies plan them.
        """
        began = time.monotonic()
        while True:
            await self._watcher.change(_QUIET)
            if seen := self._seen():
                return seen

            self._wish = without_lost(self._wish, self._watcher.snapshot(self._wish))
            found = self._violations(self._watcher.snapshot(self._wish, survivors))
            late = time.monotonic() - began > SETTLED
            if self._watcher.changed.is_set() and not late:
                continue

            if not found or late:
                found = await self._ask(survivors, is_planned=is_planned)

            if not found or late:
                self.tally.settled.append(time.monotonic() - began)
                self._say(f"  settled after {time.monotonic() - began:.1f} s")
                return found

    def _violations(self, snapshot: FleetSnapshot) -> list[Violation]:
        """Return what is wrong in a snapshot that things have settled to."""
        found = [*rules.violations(snapshot), *not_injected(snapshot)]
        unshown = self._watcher.results.not_shown(snapshot.proxies.values())
        return [*found, *(Violation("results are shown", what) for what in unshown)]

    def _seen(self) -> list[Violation]:
        """Return what was wrong at some moment, however all is now."""
        actor = self.actor
        slow = timing.violations(actor.timer.measures)
        return [*self._watcher.violations, *actor.leaver.violations, *actor.violations, *slow]

    async def _tell_events(self, found: list[Violation]) -> None:
        """Tell the source's events about objects of the violations: perhaps why they were ended."""
        text = " ".join(map(str, found))
        try:
            events = await self._harness.source.list(kinds.EVENTS, NAMESPACE)
        except VnodeError as error:
            self._say(f"  no events: {error}")
            return

        for event in sorted(events, key=lambda one: str(one.get("lastTimestamp"))):
            name = (event.get("involvedObject") or {}).get("name") or ""
            if name and name in text:
                fields = [event.get(field) for field in ("lastTimestamp", "reason", "message")]
                self._say(f"  event of {name}: {' '.join(map(str, fields))}")

    async def _ask(self, survivors: dict[str, str], *, is_planned: bool) -> list[Violation]:
        try:
            snapshot = await self._watcher.fresh_snapshot(self._wish, survivors)
            found = self._violations(snapshot)
            asked = [name for name in TARGETS if name not in self._watcher.unasked]
            found = found or await devices.violations(self._harness, asked)
            return found or (await self.placements.violations() if is_planned else [])
        except VnodeError as error:
            return [Violation("API servers answer", str(error))]


def untouched(
    before: FleetSnapshot, step: Step, movable: frozenset[str], ending: Collection[str]
) -> dict[str, str]:
    """Return the pods, UID to key, that must be there after the step as they were before.

    `movable` are the workloads whose pods placement policies may have moved, `ending` the targets
    whose pods end.
    """
    gone = set(map(snapshot.virtual_node, ending))
    return {
        objects.uid(pod): key
        for key, pod in before.proxies.items()
        if objects.labels(pod).get(snapshot.APP) not in step.touched | movable
        and snapshot.node_of(pod) not in gone
        and snapshot.phase(pod) in snapshot.ALIVE
        and not objects.is_terminating(pod)
    }


def without_lost(wish: Wish, now: FleetSnapshot) -> Wish:
    """Return the wish without bare pods that ended for a reason, because nobody replaces them."""
    for name, workload in list(wish.workloads.items()):
        ended = f"default/{name}" in now.excused.values()
        if workload.kind is WorkloadKind.POD and not now.of(workload) and ended:
            wish = wish.without(name)

    return replace(wish)
