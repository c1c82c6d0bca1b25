"""Of two gangs of different sources that lock each other in a target, one makes way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background, computing
from tests.computing import WorkingClock
from tests.unit.pods.target_side import NAMESPACE, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Invalid
from vnode.gangs.conflicts import PATIENCE, TIMES
from vnode.gangs.marks import GangMark
from vnode.pods import delegate
from vnode.pods.reservations import Refusal, Reservations
from vnode.pods.target.gang_conflicts import GangConflicts

pytestmark = pytest.mark.looptime


class LockedTarget:
    """A target with candidates of gangs of four, some of which have a place."""

    def __init__(self, clock: Clock) -> None:
        self.cluster = TargetCluster(clock)
        agent = self.cluster.server.client("agent")
        self.conflicts = GangConflicts(agent, self.cluster.chaperons, clock)
        self.reservations = Reservations(agent, self.cluster.chaperons)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.cluster.informed(), background.running(self.conflicts.run()):
            yield

    def send(
        self,
        name: str,
        source: str,
        *,
        since: str,
        reserved: bool = True,
        namespace: str = NAMESPACE,
        priority: int = 0,
    ) -> None:
        gang = {"id": f"gang-of-{source}", "minimum": 4, "since": since, "priority": priority}
        mark = json.dumps(gang)
        annotations = {keys.PARENT_CLUSTER_UID: source, keys.GANG_MARK: mark}
        if reserved:
            annotations[keys.IS_RESERVED] = "true"

        self.cluster.send(name, annotations=annotations, namespace=namespace)

    def refused(self) -> set[str]:
        found = self.cluster.server.store.all(kinds.POD_CHAPERONS)
        marked = [each for each in found if keys.GANG_REFUSED in objects.annotations(each)]
        assert not any(keys.IS_RESERVED in objects.annotations(each) for each in marked)
        return {objects.name(each) for each in marked}


@pytest.fixture
async def target(clock: Clock) -> LockedTarget:
    return LockedTarget(clock)


async def test_the_younger_of_two_incomplete_gangs_makes_way_with_all_its_candidates(
    target: LockedTarget,
) -> None:
    async with target.running():
        target.send("old-0", "a", since="1")
        target.send("young-0", "b", since="2")
        target.send("young-1", "b", since="2", reserved=False)
        await asyncio.sleep(PATIENCE - 1)
        assert target.refused() == set()
        await asyncio.sleep(4)
        assert target.refused() == {"young-0", "young-1"}


async def test_a_candidate_that_cannot_be_marked_keeps_no_other_in_its_place(
    target: LockedTarget,
) -> None:
    full = Invalid(422, "Invalid", "metadata.annotations: Too long")
    target.cluster.server.fail(
        full, verb="patch", kind=kinds.POD_CHAPERONS, when=lambda r: r.name == "full-0", times=None
    )
    async with target.running():
        target.send("old-0", "a", since="1")
        target.send("full-0", "b", since="2")
        target.send("young-0", "c", since="3")
        await asyncio.sleep(PATIENCE + 3)
        assert target.refused() == {"young-0"}


async def test_what_a_source_says_in_its_namespace_is_not_said_of_another_ones_gang(
    target: LockedTarget,
) -> None:
    async with target.running():
        target.send("planted", "a", since="9", namespace="hostile", priority=-9)
        target.send("old-0", "a", since="1")
        target.send("young-0", "b", since="2")
        await asyncio.sleep(PATIENCE + 3)
        assert target.refused() == {"young-0"}


async def test_for_a_gang_that_is_never_complete_others_make_way_a_few_times(
    target: LockedTarget,
) -> None:
    async with target.running():
        target.send("hostile", "h", since="0", namespace="hostile", priority=9)
        for number in range(TIMES + 1):
            target.send(f"w{number}", "a", since="1")
            await asyncio.sleep(PATIENCE + 3)

        assert target.refused() == {"hostile", *(f"w{number}" for number in range(TIMES))}


async def test_gangs_that_do_not_lock_each_other_are_left_alone(target: LockedTarget) -> None:
    async with target.running():
        target.send("old-0", "a", since="1")
        target.send("waiting-0", "b", since="2", reserved=False)
        for number in range(4):
            target.send(f"complete-{number}", "c", since="3")

        await asyncio.sleep(PATIENCE * 3)
        assert target.refused() == set()


async def test_a_candidate_that_makes_way_holds_no_place(target: LockedTarget) -> None:
    chaperon = target.cluster.send("w")
    async with target.cluster.informed():
        held = asyncio.create_task(target.reservations.allowed(delegate.build(chaperon)))
        await asyncio.sleep(1)

        def refuse(obj: objects.Object) -> None:
            obj["metadata"].setdefault("annotations", {})[keys.GANG_REFUSED] = "another one"

        target.cluster.server.change(kinds.POD_CHAPERONS, "w", NAMESPACE, refuse)
        with pytest.raises(Refusal, match="another one"):
            await held


async def test_a_gang_of_very_many_candidates_makes_way_beside_others(clock: Clock) -> None:
    target = LockedTarget(clock)
    target.cluster.server.latency = lambda: 0.05
    async with target.running():
        target.send("hostile-of-a", "a", since="1", namespace="hostile")
        for number in range(400):
            is_reserved = number >= 397
            target.send(
                f"hostile-{number}", "b", since="2", reserved=is_reserved, namespace="hostile"
            )

        await asyncio.sleep(PATIENCE + 3)
        target.send("old-0", "a", since="1")
        target.send("young-0", "c", since="3")
        await asyncio.sleep(PATIENCE + 3)
        assert "young-0" in target.refused()
        await asyncio.sleep(60)
        assert len(target.refused()) == 401
        assert target.cluster.server.count("patch", kinds.POD_CHAPERONS) == 401


async def test_a_refusal_that_the_informer_has_not_seen_counts(target: LockedTarget) -> None:
    target.send("young-0", "b", since="2")
    chaperon, key = target.cluster.chaperon("young-0"), f"{NAMESPACE}/young-0"
    target.conflicts._marked[key] = chaperon, GangMark("gang-of-b", 4, "2")
    assert await target.conflicts._gangs()
    await target.conflicts._refuse(key)
    assert target.refused() == {"young-0"}
    assert not await target.conflicts._gangs()


async def test_candidates_of_very_many_gangs_are_looked_at_in_steps(clock: Clock) -> None:
    """A source may send as many candidates as it likes, and each may be of a gang of its own."""
    target = LockedTarget(WorkingClock(clock))
    for number in range(30_000):
        metadata = {"annotations": {keys.PARENT_CLUSTER_UID: "s"}}
        mark = GangMark(f"gang-{number}", 4, "")
        target.conflicts._marked[f"ns/c{number}"] = {"metadata": metadata}, mark

    with computing.steps() as steps:
        assert await asyncio.create_task(target.conflicts._reconcile("all")) is None

    assert max(steps) < 0.05
