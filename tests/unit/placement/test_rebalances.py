"""A Rebalance moves pods to where they are planned now, once, and says how it went."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests import computing
from tests.computing import BusyClock
from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment, fleet
from tests.unit.pods.policies import spread
from tests.unit.scheduling import costs
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.placement.moves import planned_workloads
from vnode.placement.moves.demands import WorkloadRebalance
from vnode.placement.moves.rebalance_progress import RebalanceProgress
from vnode.placement.moves.rebalance_turns import AT_ONCE
from vnode.placement.moves.rebalances import PROGRESS_DEADLINE
from vnode.planning.move_state import Decision
from vnode.planning.workload_key import PlannedWorkload, workload_of
from vnode.runtime import write_limits

pytestmark = pytest.mark.looptime


async def turned(env: MovingEnvironment) -> None:
    """Have ten pods that run as their policy planned them before it changed."""
    env.scale(10)
    await asyncio.sleep(30)
    assert env.living() == {"c1": 4, "c2": 4, "c3": 2}
    planned = env.policy.policy
    assert planned is not None
    first, second, third = planned.targets
    targets = (replace(first, weight=20), second, replace(third, weight=40))
    env.change_policy(replace(planned, targets=targets))


def true_conditions(status: Object) -> list[str]:
    return [c["type"] for c in status["conditions"] if c["status"] == "True"]


@pytest.mark.parametrize(
    "spec",
    [{}, {"workloads": [{"kind": "Deployment", "name": "web"}]}, {"policy": "web"}],
)
async def test_it_moves_the_pods_of_its_workloads_and_is_deleted_after_its_time(
    clock: Clock, spec: dict[str, Any]
) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        await turned(env)
        env.rebalance(ttlSecondsAfterFinished=100, **spec)
        await asyncio.sleep(4)
        status = env.rebalanced()
        assert (status["phase"], true_conditions(status)) == ("Progressing", ["Progressing"])
        await asyncio.sleep(60)
        assert env.living() == {"c1": 2, "c2": 4, "c3": 4}
        status = env.rebalanced()
        assert (status["phase"], status["moved"], status["remaining"]) == ("Complete", 2, 0)
        assert true_conditions(status) == ["Complete"]
        assert env.most_missing == 1
        [(_, message)] = [each for each in env.events_of("Complete") if each[0] == "Rebalance"]
        assert message == "2 pods of 1 workloads were moved; all run as planned"
        await asyncio.sleep(100)
        assert env.rebalanced() == {}
        await asyncio.sleep(3600)
        assert len(env.evictions) == 2


async def test_several_move_at_once_if_it_says_so(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        await turned(env)
        env.rebalance(maxConcurrent="30%")
        await asyncio.sleep(10)
        assert env.living() == {"c1": 2, "c2": 4, "c3": 4}
        assert env.most_missing <= 2


async def test_it_fails_where_there_is_no_room_and_says_so(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 2)
    async with env.moving():
        await turned(env)
        env.rebalance()
        await asyncio.sleep(30)
        assert env.rebalanced()["message"] == ("0 pods were moved, 2 are left: no room in c3")
        await asyncio.sleep(PROGRESS_DEADLINE)
        status = env.rebalanced()
        assert (status["phase"], status["remaining"]) == ("Failed", 2)
        assert env.evictions == []


async def test_it_fails_for_what_has_no_plan(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        await turned(env)
        env.rebalance(workloads=[{"kind": "StatefulSet", "name": "db"}])
        env.rebalance("bad", maxConcurrent="lots")
        await asyncio.sleep(30)
        status = env.rebalanced()
        assert status["phase"] == "Failed"
        assert status["message"] == "pods of statefulset/default/db not found"
        assert env.rebalanced("bad")["conditions"][0]["reason"] == "Invalid"
        assert env.server.count("patch", kinds.REBALANCES) == 3
        assert env.evictions == []


async def test_a_budget_holds_it_up(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        await turned(env)
        env.forbid(times=3)
        env.rebalance()
        await asyncio.sleep(15)
        assert "Cannot evict pod as it would violate" in env.rebalanced()["message"]
        await asyncio.sleep(60)
        assert env.rebalanced()["phase"] == "Complete"


async def test_a_workload_that_ends_meanwhile_is_done(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 2)
    async with env.moving():
        await turned(env)
        env.rebalance()
        await asyncio.sleep(30)
        env.replicas = 0
        for pod in env.pods():
            env.remove(objects.name(pod))

        await asyncio.sleep(30)
        assert env.rebalanced()["phase"] == "Complete"


async def test_a_new_leader_goes_on(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 3)
    async with env.running():
        async with env.leading():
            await turned(env)
            env.rebalance()
            await asyncio.sleep(60)
            assert env.rebalanced()["moved"] == 1

        env.rooms[2].grow(9)
        async with env.leading():
            await asyncio.sleep(60)
            status = env.rebalanced()
            assert (status["phase"], status["moved"]) == ("Complete", 2)


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"policy": "nope"}, "NotFound", "placementpolicy/nope not found"),
        (
            {"policy": "nope", "workloads": [{"kind": "Deployment", "name": "web"}]},
            "NotFound",
            "placementpolicy/nope not found",
        ),
        (
            {"policy": "unused"},
            "NotPlanned",
            "placementpolicy/unused applies to no pods",
        ),
        (
            {"policy": "refused"},
            "NotPlanned",
            "placementpolicy/refused is not in force: create Target moon",
        ),
        (
            {"workloads": [{"kind": "StatefulSet", "name": "db"}]},
            "NotFound",
            "pods of statefulset/default/db not found",
        ),
        (
            {"policy": "web", "workloads": [{"kind": "StatefulSet", "name": "db"}]},
            "NotFound",
            "pods of statefulset/default/db not found",
        ),
    ],
)
async def test_it_fails_if_it_names_what_is_not_there(
    clock: Clock, spec: Object, reason: str, message: str
) -> None:
    env = fleet(clock, 20, 20, 20)
    refused = {"type": "Accepted", "status": "False", "message": "create Target moon"}
    env.policy.others = {
        "default/unused": (spread(), {}),
        "default/refused": (None, {"conditions": [refused]}),
    }
    async with env.moving():
        await turned(env)
        env.rebalance(**spec)
        await asyncio.sleep(30)
        status = env.rebalanced()
        assert (status["phase"], status["message"]) == ("Failed", message)
        [failed] = [c for c in status["conditions"] if c["status"] == "True"]
        assert (failed["type"], failed["reason"]) == ("Failed", reason)
        assert env.evictions == []


async def test_what_is_created_a_moment_later_is_found(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        await turned(env)
        policy = env.policy.policy
        env.change_policy(None)
        env.rebalance(policy="web")
        await asyncio.sleep(2)
        status = env.rebalanced()
        assert (status["phase"], status["message"]) == (
            "Progressing",
            "placementpolicy/web not found",
        )
        env.change_policy(policy)
        await asyncio.sleep(60)
        assert env.rebalanced()["phase"] == "Complete"
        assert len(env.evictions) == 2


async def test_a_namespace_without_plans_says_that_there_are_none(clock: Clock) -> None:
    env = MovingEnvironment(clock, None, FrankRoom("c1", clock, 5))
    async with env.moving():
        env.rebalance()
        await asyncio.sleep(30)
        status = env.rebalanced()
        assert status["phase"] == "Complete"
        assert status["message"].startswith("no pods of the namespace have a placement policy")


async def test_of_many_of_a_namespace_some_begin_at_once_and_the_others_by_and_by(
    clock: Clock,
) -> None:
    env, limit = fleet(clock, 20, 20, 20), write_limits.REBALANCES
    names = [f"again-{number}" for number in range(limit.burst + 10)]

    def begun() -> int:
        return sum(bool(env.rebalanced(name)) for name in names)

    async with env.moving():
        await turned(env)
        for name in names:
            env.rebalance(name)

        await asyncio.sleep(1)
        assert begun() == limit.burst
        await asyncio.sleep(11 / limit.rate)
        assert begun() == len(names)


async def test_few_of_a_namespace_run_at_once_and_the_others_say_that_they_wait(
    clock: Clock,
) -> None:
    env = fleet(clock, 20, 20, 20)
    names = [f"again-{number}" for number in range(AT_ONCE + 2)]

    def phases() -> dict[str, int]:
        return Counter(env.rebalanced(name).get("phase") for name in names)

    async with env.moving():
        await turned(env)
        env.forbid()
        for name in names:
            env.rebalance(name)

        await asyncio.sleep(30)
        assert phases() == {"Progressing": AT_ONCE, "Pending": 2}
        *_, first, last = (env.rebalanced(name) for name in names)
        assert first["message"] == last["message"]
        assert "4 Rebalances of a namespace are carried out at once" in last["message"]
        assert {c["reason"] for c in last["conditions"]} == {"Queued"}
        assert true_conditions(last) == []
        assert "startTime" not in last
        env.server.remove(kinds.REBALANCES, names[-2], "default")
        env.server.remove(kinds.REBALANCES, names[0], "default")
        await asyncio.sleep(30)
        assert phases() == {"Progressing": AT_ONCE, None: 2}
        env.server.remove(kinds.REBALANCES, names[1], "default")
        env.rebalance(names[0])
        env.rebalance(names[1])
        await asyncio.sleep(30)
        assert phases() == {"Progressing": AT_ONCE, "Pending": 1, None: 1}
        await asyncio.sleep(PROGRESS_DEADLINE)
        assert phases() == {"Failed": AT_ONCE, "Progressing": 1, None: 1}


async def test_what_is_kept_of_one_that_runs_is_about_workloads_that_are_not_at_their_plan(
    clock: Clock,
) -> None:
    progress, keys = RebalanceProgress(), [PlannedWorkload(f"w{n}", "") for n in range(200)]
    demands = [WorkloadRebalance() for _ in keys]
    for key, demand in zip(keys, demands, strict=True):
        progress.ask(key, demand)

    assert (await progress.sums(clock)).unmet == 200
    for demand in demands[1:]:
        demand.count_eviction(0)
        demand.report(Decision(), 0)

    demands[0].report(Decision(left=3, why="no room"), 1)
    sums = await progress.sums(clock)
    assert (sums.workloads, sums.moved, sums.left, sums.under_way) == (200, 199, 3, 1)
    assert (sums.unmet, sums.why, sums.is_news) == (1, "no room", True)
    assert costs.entries(progress) < 20
    assert not (await progress.sums(clock)).is_news


async def test_one_for_many_workloads_is_looked_at_in_slices() -> None:
    progress = RebalanceProgress()
    for number in range(100):
        progress.ask(PlannedWorkload(f"w{number}", ""), WorkloadRebalance())

    with computing.steps() as steps:
        await progress.sums(BusyClock())

    assert len(steps) > 30


async def test_one_that_names_many_workloads_does_not_look_at_each_pod_for_each(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = list[str]()

    def counting(pod: Object, group_by: str) -> str:
        looked.append(objects.name(pod))
        return workload_of(pod, group_by)

    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        await turned(env)
        monkeypatch.setattr(planned_workloads, "workload_of", counting)
        env.rebalance(workloads=[{"kind": "Job", "name": f"none-{n}"} for n in range(100)])
        await asyncio.sleep(0.5)
        assert 0 < len(looked) < 100  # ten pods, at each look
        assert env.rebalanced()["phase"] == "Progressing"  # they may come
