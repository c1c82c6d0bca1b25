"""A few seconds of the simulation, and what its parts promise."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation import loop
from tests.simulation.schedule import SPAN, TARGETS, Owner, Schedule, Workload, draw
from tests.simulation.simulation import simulate
from vnode.api.clock import SystemClock

ROOT = Path(__file__).parents[3]
SHARES = 4  # so that the processes of pytest-xdist share the work
SEEDS = 25  # in each of them


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


def schedule(*workloads: Workload) -> Schedule:
    return Schedule(1, 0.01, dict.fromkeys(TARGETS, (2,)), workloads, (), ())


def test_pods_run_in_the_targets() -> None:
    outcome = simulate(schedule(Workload("a", Owner.REPLICA_SET, 0.0, count=3)))
    assert outcome.violations == ()
    assert (outcome.pods, outcome.delegates) == (3, 3)


def test_a_job_gets_another_pod_for_one_that_fails() -> None:
    job = Workload("a", Owner.JOB, 0.0, runs=1.0, fails=1.0)
    assert simulate(schedule(job)).pods > 1


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
