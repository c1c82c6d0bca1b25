"""Runs schedules in several processes, batch by batch, for a while.

Processes are forked, before there are threads: to import everything again takes each one as long as
thirty schedules.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Final

from tests.simulation import gang_schedules
from tests.simulation.drawing import draw
from tests.simulation.simulation import ScheduleResult, simulate

_BATCH: Final = 10


def run_batch(seeds: range, policies_share: float) -> list[ScheduleResult]:
    """Run some schedules.

    Garbage is collected after each, when nearly all is garbage, and of what was there before the
    first one nothing is looked at.
    """
    gc.disable()
    gc.collect()
    gc.freeze()
    return [_run(seed, policies_share) for seed in seeds]


def run_one(seed: int, policies_share: float, *, traced: bool = False) -> ScheduleResult:
    """Run the schedule of a seed, which may be one of gangs."""
    if not gang_schedules.is_one(seed):
        return simulate(draw(seed, policies_share), traced=traced)

    began, schedule = time.monotonic(), gang_schedules.draw(seed)
    world, violations = gang_schedules.simulate(schedule)
    pods = sum(len(world.pods_of(name)) for name in world.jobs)
    requests = sum(len(cluster.server.requests) for cluster in world.clusters.values())
    return ScheduleResult(schedule, violations, pods, pods, requests, 0, time.monotonic() - began)


def _run(seed: int, policies_share: float) -> ScheduleResult:
    outcome = run_one(seed, policies_share)
    gc.collect()
    return outcome


def run(first: int, seconds: float, jobs: int, policies_share: float) -> Iterator[ScheduleResult]:
    """Run schedules from a seed on, until the time is over."""
    end = time.monotonic() + seconds
    batches = (range(start, start + _BATCH) for start in itertools.count(first, _BATCH))
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        running: set[Future[list[ScheduleResult]]] = set()
        try:
            while running or time.monotonic() < end:
                while len(running) < jobs and time.monotonic() < end:
                    running.add(pool.submit(run_batch, next(batches), policies_share))

                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from future.result()
        finally:
            pool.shutdown(cancel_futures=True)
