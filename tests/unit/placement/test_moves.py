"""Pods that run are moved to where their policy wants them, if there is room, and never back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests import background
from tests.apiserver.links import following
from tests.unit.placement.moving_world import FrankRoom, MovingWorld, fleet
from tests.unit.pods.policies import add_replicas, entry, spread
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Denied, ServerError
from vnode.kube.informer import Informer
from vnode.pods.source.placeholders import Placeholders
from vnode.scheduling.placement.moves import Change, Drain, Failback, FailbackMode, Portion

pytestmark = pytest.mark.looptime


async def overflowed(world: MovingWorld) -> None:
    """Have twenty pods of which four run in the third cluster, for lack of room."""
    world.scale(20)
    await asyncio.sleep(60)
    assert world.living() == {"c1": 6, "c2": 6, "c3": 4, "": 4}
    await asyncio.sleep(90)
    assert world.living() == {"c1": 6, "c2": 6, "c3": 8}


@asynccontextmanager
async def placeholders_kept(world: MovingWorld, clock: Clock) -> AsyncIterator[None]:
    """Move pods to where their placeholders could start."""
    client = world.server.client()
    proxies, nodes = Informer(client, kinds.PODS), Informer(client, kinds.NODES)
    keeper = Placeholders(client, proxies, nodes, world.links, world.cache, world.policy, clock)
    world.placeholders = keeper.openings
    async with world.moving(), following(proxies, nodes), background.running(keeper.run()):
        keeper.openings.subscribe(world.moves.look_at)
        yield


async def test_pods_that_overflowed_go_back_when_there_has_been_room_for_long_enough(
    clock: Clock,
) -> None:
    world = fleet(clock, 6, 6, 14)
    async with world.moving():
        await overflowed(world)
        marked = [p for p in world.pods() if keys.OVERFLOWED_FROM in objects.annotations(p)]
        assert len(marked) == 4
        await asyncio.sleep(3600)
        assert world.evictions == []

        c1, c2, _ = world.rooms
        c1.grow(8)
        c2.grow(8)
        await asyncio.sleep(298)
        assert world.evictions == []
        await asyncio.sleep(60)
        assert world.living() == {"c1": 8, "c2": 8, "c3": 4}
        assert (len(world.evictions), world.most_missing) == (4, 1)
        assert set(world.evictions) == {objects.name(pod) for pod in marked}
        await asyncio.sleep(3600)
        assert len(world.evictions) == 4


async def test_after_going_back_the_workload_shrinks_by_its_plan(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14)
    async with world.moving():
        await overflowed(world)
        for room in world.rooms[:2]:
            room.grow(8)

        await asyncio.sleep(400)
        world.scale_in(10, {"c1": 4, "c2": 4, "c3": 2})
        await asyncio.sleep(3600)
        assert world.living() == {"c1": 4, "c2": 4, "c3": 2}
        assert len(world.evictions) == 4


async def test_room_that_comes_and_goes_is_no_room(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14)
    async with world.moving():
        await overflowed(world)
        for _ in range(5):
            world.rooms[0].grow(8)
            await asyncio.sleep(200)
            world.rooms[0].grow(6)
            await asyncio.sleep(50)

        assert world.evictions == []


async def test_never_means_never(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14, failback=Failback(FailbackMode.NEVER))
    async with world.moving():
        await overflowed(world)
        world.rooms[0].grow(20)
        await asyncio.sleep(3600)
        assert world.evictions == []
        assert not world.server.received("get", kinds.PODS)


async def test_a_part_of_the_workload_moves_at_once(clock: Clock) -> None:
    failback = Failback(FailbackMode.PROBE, 60, Portion(15, is_percentage=True))
    world = fleet(clock, 6, 6, 14, failback=failback)
    async with world.moving():
        await overflowed(world)
        for room in world.rooms[:2]:
            room.grow(8)

        await asyncio.sleep(120)
        assert world.living() == {"c1": 8, "c2": 8, "c3": 4}
        assert world.most_missing <= 3


async def test_a_placeholder_says_since_when_there_is_room(clock: Clock) -> None:
    class Told:
        def __init__(self) -> None:
            self.moments: dict[str, float] = {}

        def since(self, workload: str, node: str) -> float | None:
            assert workload == "deployment/default/web"
            return self.moments.get(node)

    world, told = fleet(clock, 6, 6, 14), Told()
    world.placeholders = told
    async with world.moving():
        await overflowed(world)
        world.rooms[0].grow(8)
        world.rooms[1].grow(8)
        await asyncio.sleep(1000)
        assert world.evictions == []
        told.moments[world.rooms[1].node] = clock.monotonic() - 299
        world.moves.look_at("deployment/default/web")
        await asyncio.sleep(30)
        assert world.living() == {"c1": 6, "c2": 8, "c3": 6}


async def test_pods_go_back_to_where_their_placeholders_could_start(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14)
    async with placeholders_kept(world, clock):
        await overflowed(world)
        c1, c2, _ = world.rooms

        def waiting() -> Counter[str]:
            return Counter(node for pod in world.pods() for node in placeholders.of(pod))

        assert waiting() == {c1.node: 2, c2.node: 2}
        c1.grow(7)
        await asyncio.sleep(298)
        assert world.evictions == []
        await asyncio.sleep(60)
        assert world.living() == {"c1": 7, "c2": 6, "c3": 7}
        assert waiting() == {c1.node: 1, c2.node: 2}
        await asyncio.sleep(3600)
        assert (len(world.evictions), world.most_missing) == (1, 1)
        c2.grow(8)
        await asyncio.sleep(400)
        assert world.living() == {"c1": 7, "c2": 8, "c3": 5}
        assert waiting() == {c1.node: 1}
        left = [len(room.server.all(kinds.POD_CHAPERONS)) for room in world.rooms]
        assert left == [8, 8, 5]


class _TwoWorkloads(MovingWorld):
    """Has two Deployments of two pods each."""

    def _replace(self) -> None:
        for owner in ("web-1", "api-1"):
            there = sum(objects.controller_uid(pod) == owner for pod in self.pods())
            self._made += 2 - there
            add_replicas(self, 2 - there, self._made, owner)


async def test_a_place_that_becomes_free_is_given_to_one_workload_only(clock: Clock) -> None:
    c1, c2 = FrankRoom("c1", clock, 0), FrankRoom("c2", clock, 20)
    world = _TwoWorkloads(clock, spread(entry(c1.node, weight=1), entry(c2.node, weight=1)), c1, c2)
    async with placeholders_kept(world, clock):
        world.scale(4)
        await asyncio.sleep(200)
        assert world.living() == {"c2": 4}
        c1.grow(1)
        await asyncio.sleep(400)
        assert (world.living(), len(world.evictions)) == ({"c1": 1, "c2": 3}, 1)
        await asyncio.sleep(3600)
        assert len(world.evictions) == 1
        c1.grow(2)
        await asyncio.sleep(400)
        assert (world.living(), len(world.evictions)) == ({"c1": 2, "c2": 2}, 2)


async def test_pods_that_left_no_placeholder_go_back_as_in_mode_probe(clock: Clock) -> None:
    class Silent:
        def since(self, _workload: str, _node: str) -> float | None:
            return None

    world = fleet(clock, 6, 6, 14, keep_unschedulable=False)
    world.placeholders = Silent()
    async with world.moving():
        await overflowed(world)
        world.rooms[0].grow(8)
        world.rooms[1].grow(8)
        await asyncio.sleep(1000)
        assert world.living() == {"c1": 8, "c2": 8, "c3": 4}


async def test_a_budget_is_kept_and_the_reason_told(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14)
    async with world.moving():
        await overflowed(world)
        world.forbid(times=4)
        world.rooms[0].grow(8)
        await asyncio.sleep(330)
        assert world.living()["c3"] == 8
        message = "cannot be moved yet: Cannot evict pod as it would violate"
        assert {kind: text.endswith(message) for kind, text in world.said("MoveWaits")} == {
            "Pod": True,
            "PlacementPolicy": True,
        }
        await asyncio.sleep(60)
        assert world.living() == {"c1": 8, "c2": 6, "c3": 6}
        moved = "moved by placementpolicy/web (failback): 8 of 20 run in c3, planned 4; c1 has room"
        assert ("Pod", moved) in world.said("Moved")


@pytest.mark.parametrize(
    "error",
    [
        ServerError(500, "", "This pod has more than one PodDisruptionBudget"),
        Denied(403, "Forbidden", "cannot create resource pods/eviction"),
    ],
)
async def test_what_else_forbids_an_eviction_is_told_too(clock: Clock, error: ApiError) -> None:
    world = fleet(clock, 6, 6, 14)
    async with world.moving():
        await overflowed(world)
        world.forbid(error=error)
        world.rooms[0].grow(8)
        await asyncio.sleep(600)
        assert world.living()["c3"] == 8
        assert any(error.message in text for _, text in world.said("MoveWaits"))
        assert 10 < len(world.evictions) < 40


async def test_a_cluster_that_says_too_much_is_tried_less_and_less(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 20)
    async with world.moving():
        await overflowed(world)
        world.rooms[0].lies = 5
        world.rooms[0].report_room()
        await asyncio.sleep(3 * 3600)
        assert 2 <= len(world.evictions) <= 5
        assert world.living() == {"c1": 6, "c2": 6, "c3": 8}


async def test_a_drain_moves_pods_one_by_one_and_ends(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 20)
    async with world.moving():
        world.scale(10)
        await asyncio.sleep(30)
        assert world.living() == {"c1": 4, "c2": 4, "c3": 2}
        assert not world.server.received("get", kinds.PODS)
        planned = world.policy.policy
        assert planned is not None
        world.change_policy(replace(planned, drains=(Drain(world.rooms[0].node, 1),)))
        await asyncio.sleep(60)
        assert world.living() == {"c1": 1, "c2": 6, "c3": 3}
        assert (len(world.evictions), world.most_missing) == (3, 1)
        world.change_policy(planned)
        await asyncio.sleep(3600)
        assert world.living() == {"c1": 1, "c2": 6, "c3": 3}


async def test_a_drain_waits_for_room(clock: Clock) -> None:
    world = fleet(clock, 4, 4, 2)
    async with world.moving():
        world.scale(10)
        await asyncio.sleep(30)
        planned = world.policy.policy
        assert planned is not None
        world.change_policy(replace(planned, drains=(Drain(world.rooms[0].node),)))
        await asyncio.sleep(300)
        assert world.evictions == []
        why = "deployment/default/web: 4 pods wait to be moved (drain): no room in c2, c3"
        assert world.said("MoveWaits") == [("PlacementPolicy", why)]
        world.rooms[1].grow(7)
        await asyncio.sleep(60)
        assert world.living() == {"c1": 1, "c2": 7, "c3": 2}


async def test_changes_move_pods_only_if_the_policy_says_so(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 20)
    async with world.moving():
        world.scale(10)
        await asyncio.sleep(30)
        planned = world.policy.policy
        assert planned is not None
        first, second, third = planned.targets
        turned = (replace(first, weight=20), second, replace(third, weight=40))
        world.change_policy(replace(planned, targets=turned))
        await asyncio.sleep(600)
        assert world.evictions == []
        asks = replace(planned, reschedule=frozenset({Change.POLICY}))
        world.change_policy(replace(asks, targets=turned))
        await asyncio.sleep(60)
        assert world.living() == {"c1": 2, "c2": 4, "c3": 4}
        assert len(world.evictions) == 2


async def test_pods_that_nobody_replaces_stay(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 20, group_by="app")
    async with world.moving():
        for number in range(4):
            world.add(f"bare-{number}", cpu="1", labels={"app": "bare"})

        await asyncio.sleep(10)
        planned = world.policy.policy
        assert planned is not None
        drains = tuple(Drain(room.node) for room in world.rooms[:2])
        world.change_policy(replace(planned, drains=drains))
        await asyncio.sleep(600)
        assert world.evictions == []


async def test_a_new_leader_waits_for_the_pods_that_start(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14, failback=Failback(stabilization=10))
    async with world.running():
        async with world.leading():
            await overflowed(world)
            world.start_after = 1e6
            for room in world.rooms[:2]:
                room.grow(8)

            await asyncio.sleep(60)
            assert len(world.evictions) == 1

        async with world.leading():
            await asyncio.sleep(300)
            assert len(world.evictions) == 1
