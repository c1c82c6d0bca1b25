"""Pods that run are moved to where their policy wants them, if there is room, and never back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests import computing
from tests.unit.placement.moving_acts import make_room, overflowed, placed
from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment, fleet
from tests.unit.pods.policies import entry, spread
from tests.unit.pods.source.test_target_quotas import KeptQuota
from vnode.api import kinds, selectors
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Denied, ServerError
from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.planning.move_policy import Drain, Failback, IntOrPercent
from vnode.planning.policy import Clusters, PlacementTarget
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime


def counted(name: str, **labels: str) -> float:
    """Return how far a counter is."""
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


async def test_a_budget_is_kept_and_the_reason_told(clock: Clock) -> None:
    env = fleet(clock, 6, 6, 14)
    async with env.moving():
        await overflowed(env)
        before = counted("vnode_moves_refused_total", reason="failback")
        env.forbid(times=4)
        env.rooms[0].grow(8)
        await asyncio.sleep(330)
        assert env.living()["c3"] == 8
        message = "cannot be moved yet: Cannot evict pod as it would violate"
        assert {kind: text.endswith(message) for kind, text in env.events_of("MoveWaits")} == {
            "Pod": True,
            "PlacementPolicy": True,
        }
        assert counted("vnode_moves_refused_total", reason="failback") > before
        await asyncio.sleep(60)
        assert env.living() == {"c1": 8, "c2": 6, "c3": 6}
        moved = "moved by placementpolicy/web (failback): 8 of 20 run in c3, planned 4; c1 has room"
        assert ("Pod", moved) in env.events_of("Moved")


@pytest.mark.parametrize(
    "error",
    [
        ServerError(500, "", "This pod has more than one PodDisruptionBudget"),
        Denied(403, "Forbidden", "cannot create resource pods/eviction"),
    ],
)
async def test_what_else_forbids_an_eviction_is_told_too(clock: Clock, error: ApiError) -> None:
    env = fleet(clock, 6, 6, 14)
    async with env.moving():
        await overflowed(env)
        env.forbid(error=error)
        env.rooms[0].grow(8)
        await asyncio.sleep(600)
        assert env.living()["c3"] == 8
        assert env.replacements.why == {}
        assert any(error.message in text for _, text in env.events_of("MoveWaits"))
        assert 10 < len(env.evictions) < 40


async def test_a_cluster_that_says_too_much_is_tried_less_and_less(clock: Clock) -> None:
    env = fleet(clock, 6, 6, 20)
    async with env.moving():
        await overflowed(env)
        env.rooms[0].lies = 5
        env.rooms[0].report_room()
        await asyncio.sleep(3 * 3600)
        assert 2 <= len(env.evictions) <= 5
        assert env.living() == {"c1": 6, "c2": 6, "c3": 8}


async def test_a_drain_moves_pods_one_by_one_and_ends(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        planned = await placed(env)
        assert env.living() == {"c1": 4, "c2": 4, "c3": 2}
        assert not env.server.received("get", kinds.PODS)
        before = counted("vnode_moves_total", reason="drain", outcome="arrived")
        env.change_policy(replace(planned, drains=(Drain(env.rooms[0].node, 1),)))
        await asyncio.sleep(60)
        assert counted("vnode_moves_total", reason="drain", outcome="arrived") == before + 3
        assert env.living() == {"c1": 1, "c2": 6, "c3": 3}
        assert (len(env.evictions), env.most_missing) == (3, 1)
        env.change_policy(planned)
        await asyncio.sleep(3600)
        assert env.living() == {"c1": 1, "c2": 6, "c3": 3}


async def test_a_drain_waits_for_room(clock: Clock) -> None:
    env = fleet(clock, 4, 4, 2)
    async with env.moving():
        planned = await placed(env)
        env.change_policy(replace(planned, drains=(Drain(env.rooms[0].node),)))
        await asyncio.sleep(300)
        assert env.evictions == []
        why = "deployment/default/web: 4 pods wait to be moved (drain): no room in c2, c3"
        assert env.events_of("MoveWaits") == [("PlacementPolicy", why)]
        env.rooms[1].grow(7)
        await asyncio.sleep(60)
        assert env.living() == {"c1": 1, "c2": 7, "c3": 2}


async def test_clusters_are_weighed_for_a_drain_if_no_pod_was_planned_yet(clock: Clock) -> None:
    rooms = [FrankRoom(f"c{number}", clock, 12) for number in (1, 2, 3)]
    env = MovingEnvironment(clock, spread(*(entry(room.node) for room in rooms)), *rooms)
    async with env.moving():
        env.scale(9)
        await asyncio.sleep(30)
        assert env.living() == {"c1": 3, "c2": 3, "c3": 3}
        env.cache.workloads.forget()
        planned = env.policy.policy
        assert planned is not None
        env.rebalance()
        await asyncio.sleep(5)
        assert env.rebalanced()["phase"] == "Complete"
        env.cache.workloads.forget()
        env.change_policy(replace(planned, drains=(Drain(rooms[0].node),)))
        await asyncio.sleep(60)
        assert sum(env.living().values()) == 9
        assert "c1" not in env.living()


async def test_a_cluster_that_comes_to_a_policy_is_noticed_at_once(clock: Clock) -> None:
    rooms = [FrankRoom(f"c{number}", clock, 9) for number in (1, 2)]
    pool = PlacementTarget(Clusters(selectors.from_labels({"pool": "burst"})))
    policy = spread(entry(rooms[0].node), pool, drains=(Drain(rooms[0].node),))
    env = MovingEnvironment(clock, replace(policy, drains=()), *rooms)
    async with env.moving():
        env.scale(3)
        await asyncio.sleep(30)
        assert env.living() == {"c1": 3}
        env.change_policy(policy)
        await asyncio.sleep(5)
        assert env.evictions == []
        env.server.change(
            kinds.NODES,
            rooms[1].node,
            "",
            lambda node: node["metadata"]["labels"].update(pool="burst"),
        )
        await asyncio.sleep(15)
        assert env.living() == {"c2": 3}


async def test_nothing_is_moved_before_it_is_known_which_clusters_answer(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        env.scale(10)
        await asyncio.sleep(30)
        env.rooms[1].connect()
        planned = env.policy.policy
        assert planned is not None
        env.change_policy(replace(planned, drains=(Drain(env.rooms[0].node),)))
        await asyncio.sleep(300)
        assert env.evictions == []
        env.rooms[1].set_healthy(True)
        await asyncio.sleep(60)
        assert env.living() == {"c2": 7, "c3": 3}


async def test_no_pod_is_moved_to_where_a_quota_would_refuse_it(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    _, c2, c3 = env.rooms
    for room, pods in ((c2, 5), (c3, 2)):
        KeptQuota(room, pods)

    async with env.moving():
        env.scale(10)
        await asyncio.sleep(30)
        assert env.living() == {"c1": 4, "c2": 4, "c3": 2}
        planned = env.policy.policy
        assert planned is not None
        env.change_policy(replace(planned, drains=(Drain(env.rooms[0].node),)))
        await asyncio.sleep(600)
        assert (env.living(), len(env.evictions)) == ({"c1": 3, "c2": 5, "c3": 2}, 1)


async def test_pods_that_nobody_replaces_stay(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20, group_by="app")
    async with env.moving():
        for number in range(4):
            env.add(f"bare-{number}", cpu="1", labels={"app": "bare"})

        await asyncio.sleep(10)
        planned = env.policy.policy
        assert planned is not None
        drains = tuple(Drain(room.node) for room in env.rooms[:2])
        env.change_policy(replace(planned, drains=drains))
        await asyncio.sleep(600)
        assert env.evictions == []


async def test_a_new_leader_waits_for_the_pods_that_start(clock: Clock) -> None:
    env = fleet(clock, 6, 6, 14, failback=Failback(stabilization=10))
    async with env.running():
        async with env.leading():
            await overflowed(env)
            env.start_after = 1e6
            make_room(env)
            await asyncio.sleep(60)
            assert len(env.evictions) == 1

        async with env.leading():
            await asyncio.sleep(300)
            assert len(env.evictions) == 1


async def test_a_percentage_is_of_the_pods_and_counts_none_beside_its_replacement(
    clock: Clock,
) -> None:
    c1, c2 = FrankRoom("c1", clock, 20), FrankRoom("c2", clock, 20)
    some = Failback(max_concurrent=IntOrPercent(30, is_percentage=True))
    planned = spread(entry(c1.node, weight=1), entry(c2.node, weight=1), failback=some)
    env = MovingEnvironment(clock, planned, c1, c2)
    async with env.moving():
        env.scale(8)
        await asyncio.sleep(10)
        assert env.living() == {"c1": 4, "c2": 4}
        env.start_after = 60.0
        env.change_policy(replace(planned, drains=(Drain(c2.node),)))
        await asyncio.sleep(30)
        assert len(env.evictions) == 2


async def test_others_have_their_turn_between_two_looks_at_all_pods_of_a_workload(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has overflowed and is drained is looked at for both, and has to stay for both."""

    class Busy(computing.WorkingClock):
        looks = 0

        def monotonic(self) -> float:
            self.looks += 1
            return super().monotonic() + 0.005 * self.looks

    look, found = WorkloadMoves.look, list[int]()

    def noted(moves: WorkloadMoves, *args: Any) -> Any:
        found.append(len(steps))
        return look(moves, *args)

    env = fleet(clock, 6, 6, 14)
    async with env.moving():
        await overflowed(env)
        monkeypatch.setattr(env.moves, "_clock", Busy(clock))
        monkeypatch.setattr(WorkloadMoves, "look", noted)
        policy = env.policy.policy
        assert policy is not None
        with computing.steps() as steps:
            env.change_policy(replace(policy, drains=(Drain(env.rooms[0].node),)))
            await asyncio.sleep(5)

    assert len(found) > 1
    assert len(set(found)) == len(found)
