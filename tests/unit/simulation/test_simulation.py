"""A few seconds of the simulation, and what its parts promise."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from scheduler_plugins.placement import PlacementPolicy
from tests.simulation import loop
from tests.simulation.drawing import draw
from tests.simulation.policies import UNKNOWN, PolicyChange, PolicySchedule
from tests.simulation.schedule import SPAN, TARGETS, Schedule, SimulatedWorkload, WorkloadOwner
from tests.simulation.simulation import simulate
from vnode.api.clock import SystemClock
from vnode.placement.policies.decoding import decode
from vnode.scheduling.cycle import UNPLANNED
from vnode.scheduling.status import SKIP

ROOT = Path(__file__).parents[3]
SHARES = 4  # so that the processes of pytest-xdist share the work
SEEDS = 10 if settings.get_current_profile_name() == "quick" else 25  # in each of them


@pytest.mark.no_cover
@pytest.mark.parametrize("share", range(SHARES))
def test_what_is_promised_holds_in_every_schedule(share: int) -> None:
    first = share * SEEDS
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--from", f"{first}", "--count", f"{SEEDS}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.no_cover
@pytest.mark.parametrize("seed", [7005982, 7011145, 7015920, 7016292])
def test_what_was_wrong_once_is_so_no_more(seed: int) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", str(seed), "--policies", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr


def schedule(*workloads: SimulatedWorkload) -> Schedule:
    return Schedule(1, 0.01, dict.fromkeys(TARGETS, (2,)), workloads, (), ())


def test_pods_run_in_the_targets() -> None:
    outcome = simulate(schedule(SimulatedWorkload("a", WorkloadOwner.REPLICA_SET, 0.0, count=3)))
    assert outcome.violations == ()
    assert (outcome.pods, outcome.delegates) == (3, 3)


def test_a_job_gets_another_pod_for_one_that_fails() -> None:
    job = SimulatedWorkload("a", WorkloadOwner.JOB, 0.0, runs=1.0, fails=1.0)
    assert simulate(schedule(job)).pods > 1


SHARED = PolicyChange(
    0.0,
    "web",
    {
        "selector": {},
        "targets": [{"cluster": "c2", "weight": 3, "maxReplicas": 2}, {"cluster": "c3"}],
    },
)


def planned(*changes: PolicyChange) -> Schedule:
    """Return a Deployment's worth of pods, with room in both targets, and policies."""
    pods = SimulatedWorkload("a", WorkloadOwner.REPLICA_SET, 0.0, count=4)
    ample: dict[str, tuple[int, ...]] = dict.fromkeys(TARGETS, (4, 4))
    policies = PolicySchedule(changes, calm=True, steady=True)
    seed = 2  # with which no kubelet rejects a pod at first
    return Schedule(seed, 0.01, ample, (pods,), (), (), policies=policies)


def test_pods_are_divided_by_a_policy_and_stay_for_an_hour() -> None:
    outcome = simulate(planned(SHARED), traced=True)
    assert outcome.violations == ()
    assert outcome.delegates == 4
    assert outcome.seconds > 3600
    bound = [line for line in outcome.trace if " Pod changed a-" in line and " Running " in line]
    assert {"admiralty-default-c2", "admiralty-default-c3"} <= set(" ".join(bound).split())


def test_an_agent_that_does_not_look_at_policies_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PlacementPolicy, "plan", lambda *_args: (SKIP, UNPLANNED))
    rules = {violation.rule for violation in simulate(planned(SHARED)).violations}
    assert rules & {"maximums are kept", "planned pods say why they are there"}


def test_a_policy_that_names_no_cluster_there_is_has_to_say_so() -> None:
    assert SHARED.spec is not None
    wrong = replace(SHARED, spec={**SHARED.spec, "clusters": {"names": [UNKNOWN]}})
    assert simulate(planned(wrong)).violations == ()


def test_half_of_the_schedules_have_policies_and_the_same_ones_each_time() -> None:
    drawn = [draw(seed) for seed in range(100)]
    assert drawn == [draw(seed) for seed in range(100)]
    assert 30 < sum(bool(each.policies.changes) for each in drawn) < 70
    for each in drawn:
        for change in each.policies.changes:
            assert change.spec is None or decode(change.object("default"))


def test_most_schedules_are_small_and_some_are_not() -> None:
    pods = [sum(workload.count for workload in draw(seed).workloads) for seed in range(200)]
    assert sum(count <= 3 for count in pods) > 110
    assert sum(count > 4 for count in pods) > 8


def test_a_timer_that_was_cancelled_lets_no_time_pass() -> None:
    async def wait() -> float:
        running = asyncio.get_running_loop()
        running.call_later(50, running.stop).cancel()
        running.call_later(10, lambda: None)
        await asyncio.sleep(20)
        return running.time()

    assert loop.run(wait()) == pytest.approx(20.0, abs=0.001)


def test_timers_of_one_time_are_called_in_the_order_in_which_they_were_set() -> None:
    async def wait() -> list[int]:
        running, called = asyncio.get_running_loop(), list[int]()
        for number in range(20):
            running.call_at(5.0, called.append, number)

        await asyncio.sleep(6)
        return called

    assert loop.run(wait()) == list(range(20))


def test_the_same_schedule_takes_the_same_course() -> None:
    first, second = (simulate(draw(12), traced=True) for _ in range(2))
    assert first.trace == second.trace
    assert len(first.trace) > 10


def test_a_schedule_is_drawn_alike_from_its_seed_alone() -> None:
    assert draw(3) == draw(3) != draw(4)
    assert all(each.at <= SPAN for seed in range(50) for each in draw(seed).actions)


def test_simulated_time_passes_at_once() -> None:
    async def wait() -> tuple[float, float]:
        clock = SystemClock()
        before = clock.monotonic()
        await asyncio.sleep(3600)
        return before, clock.monotonic()

    before, after = loop.run(wait())
    assert after - before == pytest.approx(3600.0, abs=0.001)


def test_time_passes_even_where_a_wait_is_too_short_for_the_clock() -> None:
    async def wait() -> int:
        clock = SystemClock()
        deadline = clock.monotonic() + 1e-10
        waits = 0
        while clock.monotonic() < deadline and waits < 10:
            waits += 1
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(deadline - clock.monotonic()))
                for _ in range(5):  # somebody is busy, so the loop never waits for a timer
                    await asyncio.sleep(0)

        return waits

    assert loop.run(wait()) < 3


def test_waiting_for_what_cannot_come_is_an_error() -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(loop.Stalled):
        loop.run(wait())
