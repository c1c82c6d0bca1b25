"""Pods that overflowed go back when there is room, and not before, by what `failback` says."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver.links import following
from tests.unit.placement.indexed import indexed
from tests.unit.placement.moving_acts import make_room, overflowed
from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment, fleet
from tests.unit.pods.policies import add_replicas, entry, spread
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.clock import Clock
from vnode.kube.informer import Informer
from vnode.placement.placeholders.controller import Placeholders
from vnode.planning.move_policy import (
    Failback,
    FailbackMode,
    IntOrPercent,
)
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime


def counted(name: str, **labels: str) -> float:
    """Return how far a counter is."""
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def placeholders_kept(env: MovingEnvironment, clock: Clock) -> AsyncIterator[None]:
    """Move pods to where their placeholders could start."""
    client = env.server.client()
    proxies, nodes = Informer(client, kinds.PODS), Informer(client, kinds.NODES)
    index = indexed(proxies, env.policy, clock)
    keeper = Placeholders(client, proxies, nodes, env.links, env.cache, env.policy, index, clock)
    env.keeper, env.placeholders = keeper, keeper.openings
    async with (
        env.moving(),
        following(proxies, nodes),
        background.running(index.run(), keeper.run()),
    ):
        keeper.openings.subscribe(env.moves.look_at)
        yield


async def test_pods_that_overflowed_go_back_when_there_has_been_room_for_long_enough(
    clock: Clock,
) -> None:
    env = fleet(clock, 6, 6, 14)
    async with env.moving():
        await overflowed(env)
        marked = [p for p in env.pods() if keys.OVERFLOWED_FROM in objects.annotations(p)]
        assert len(marked) == 4
        await asyncio.sleep(3600)
        assert env.evictions == []

        make_room(env)
        await asyncio.sleep(298)
        assert env.evictions == []
        await asyncio.sleep(60)
        assert env.living() == {"c1": 8, "c2": 8, "c3": 4}
        assert (len(env.evictions), env.most_missing) == (4, 1)
        assert set(env.evictions) == {objects.name(pod) for pod in marked}
        assert set(env.replacements.why) == set(env.evictions)
        await asyncio.sleep(3600)
        assert len(env.evictions) == 4


async def test_after_going_back_the_workload_shrinks_by_its_plan(clock: Clock) -> None:
    env = fleet(clock, 6, 6, 14)
    async with env.moving():
        await overflowed(env)
        make_room(env)
        await asyncio.sleep(400)
        env.scale_in(10, {"c1": 4, "c2": 4, "c3": 2})
        await asyncio.sleep(3600)
        assert env.living() == {"c1": 4, "c2": 4, "c3": 2}
        assert len(env.evictions) == 4


async def test_room_that_comes_and_goes_is_no_room(clock: Clock) -> None:
    env = fleet(clock, 6, 6, 14)
    async with env.moving():
        await overflowed(env)
        for _ in range(5):
            env.rooms[0].grow(8)
            await asyncio.sleep(200)
            env.rooms[0].grow(6)
            await asyncio.sleep(50)

        assert env.evictions == []


async def test_never_means_never(clock: Clock) -> None:
    env = fleet(clock, 6, 6, 14, failback=Failback(FailbackMode.NEVER))
    async with env.moving():
        await overflowed(env)
        env.rooms[0].grow(20)
        await asyncio.sleep(3600)
        assert env.evictions == []
        assert not env.server.received("get", kinds.PODS)


async def test_a_part_of_the_workload_moves_at_once(clock: Clock) -> None:
    failback = Failback(FailbackMode.PROBE, 60, IntOrPercent(15, is_percentage=True))
    env = fleet(clock, 6, 6, 14, failback=failback)
    async with env.moving():
        await overflowed(env)
        make_room(env)
        await asyncio.sleep(120)
        assert env.living() == {"c1": 8, "c2": 8, "c3": 4}
        assert env.most_missing <= 3


async def test_a_placeholder_says_since_when_there_is_room(clock: Clock) -> None:
    class KnownPlaceholders:
        def __init__(self) -> None:
            self.moments: dict[str, float] = {}

        def since(self, workload: str, node: str) -> float | None:
            assert workload == "deployment/default/web"
            return self.moments.get(node)

        def refuted(self, _workload: str, _node: str) -> float | None:
            return None

    env, known = fleet(clock, 6, 6, 14), KnownPlaceholders()
    env.placeholders = known
    async with env.moving():
        await overflowed(env)
        make_room(env)
        await asyncio.sleep(1000)
        assert env.evictions == []
        known.moments[env.rooms[1].node] = clock.monotonic() - 299
        env.moves.look_at("deployment/default/web")
        await asyncio.sleep(30)
        assert env.living() == {"c1": 6, "c2": 8, "c3": 6}


async def test_pods_go_back_to_where_their_placeholders_could_start(clock: Clock) -> None:
    env = fleet(clock, 6, 6, 14, failback=Failback(stabilization=300))
    async with placeholders_kept(env, clock):
        await overflowed(env)
        c1, c2, _ = env.rooms

        def waiting() -> Counter[str]:
            return Counter(node for pod in env.pods() for node in placeholders.of(pod))

        assert waiting() == {c1.node: 2, c2.node: 2}
        assert env.keeper is not None
        for _ in env.keeper.measure():
            pass

        shown = [counted("vnode_placeholders", target=str(r.link.target)) for r in env.rooms]
        assert shown == [2, 2, 0]
        c1.grow(7)
        await asyncio.sleep(298)
        assert env.evictions == []
        await asyncio.sleep(60)
        assert env.living() == {"c1": 7, "c2": 6, "c3": 7}
        assert waiting() == {c1.node: 1, c2.node: 2}
        await asyncio.sleep(3600)
        assert (len(env.evictions), env.most_missing) == (1, 1)
        c2.grow(8)
        await asyncio.sleep(400)
        assert env.living() == {"c1": 7, "c2": 8, "c3": 5}
        assert waiting() == {c1.node: 1}
        left = [len(room.server.all(kinds.POD_CHAPERONS)) for room in env.rooms]
        assert left == [8, 8, 5]


class _TwoWorkloads(MovingEnvironment):
    """Has two Deployments of two pods each."""

    def _replace(self) -> None:
        for owner in ("web-1", "api-1"):
            there = sum(objects.controller_uid(pod) == owner for pod in self.pods())
            self._made += 2 - there
            add_replicas(self, 2 - there, self._made, owner)


async def test_a_place_that_becomes_free_is_given_to_one_workload_only(clock: Clock) -> None:
    c1, c2 = FrankRoom("c1", clock, 0), FrankRoom("c2", clock, 20)
    env = _TwoWorkloads(clock, spread(entry(c1.node, weight=1), entry(c2.node, weight=1)), c1, c2)
    async with placeholders_kept(env, clock):
        env.scale(4)
        await asyncio.sleep(200)
        assert env.living() == {"c2": 4}
        c1.grow(1)
        await asyncio.sleep(400)
        assert (env.living(), len(env.evictions)) == ({"c1": 1, "c2": 3}, 1)
        await asyncio.sleep(3600)
        assert len(env.evictions) == 1
        c1.grow(2)
        await asyncio.sleep(400)
        assert (env.living(), len(env.evictions)) == ({"c1": 2, "c2": 2}, 2)


async def test_pods_that_left_no_placeholder_go_back_as_in_mode_probe(clock: Clock) -> None:
    class Silent:
        def since(self, _workload: str, _node: str) -> float | None:
            return None

        def refuted(self, _workload: str, _node: str) -> float | None:
            return None

    env = fleet(clock, 6, 6, 14, keep_unschedulable=False)
    env.placeholders = Silent()
    async with env.moving():
        await overflowed(env)
        make_room(env)
        await asyncio.sleep(1000)
        assert env.living() == {"c1": 8, "c2": 8, "c3": 4}
