"""`make simulation`: schedules one after the other, on all processors, until the time is over.

    python -m tests.simulation [--seconds 60] [--from SEED] [--jobs 2] [--count 100] [--policies 0]
    python -m tests.simulation --seed 7          one schedule, with all that happens in it

The first seed is drawn anew each time; a seed that fails is printed, and fails again in the same
version of Python.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator
from typing import Final

from tests.simulation import policies, workers
from tests.simulation.simulation import ScheduleResult

_HASH_SEED: Final = "PYTHONHASHSEED"
_MOST_SHOWN: Final = 5  # violations of one schedule
_MOST_FAILED: Final = 20  # schedules, after which there is enough to do


def main() -> int:
    """Run what the command line asks for; 1 if something was wrong."""
    arguments = _parse()
    if os.environ.get(_HASH_SEED) != "0":  # or sets would have another order in each run
        os.execve(  # noqa: S606
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            {**os.environ, _HASH_SEED: "0"},
        )

    if arguments.seed is not None:
        return _one(arguments.seed, arguments.policies)

    first, count, jobs = arguments.first, arguments.count, arguments.jobs
    share = arguments.policies
    if count is not None:
        return _report(_batch(range(first, first + count), share), share)

    print(f"simulation: from seed {first}, {arguments.seconds:.0f} s, {jobs} processes", flush=True)
    return _report(workers.run(first, arguments.seconds, jobs, share), share)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long; %(default)s")
    parser.add_argument("--seed", type=int, help="run this one only, and show what happens")
    first = random.SystemRandom().randrange(10**9)
    parser.add_argument("--from", dest="first", type=int, default=first, help="the first seed")
    parser.add_argument("--count", type=int, help="how many, in this process, however long")
    parser.add_argument(
        "--policies",
        type=float,
        default=policies.SHARE,
        metavar="SHARE",
        help="how many of the schedules with two targets have placement policies; %(default)s",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    return parser.parse_args()


def _one(seed: int, policies_share: float) -> int:
    outcome = workers.run_one(seed, policies_share, traced=True)
    print("\n".join([*outcome.schedule.lines(), "", *outcome.trace, ""]))
    print(*outcome.violations or ["nothing is wrong"], sep="\n")
    return 1 if outcome.violations else 0


def _batch(seeds: range, policies_share: float) -> Iterator[ScheduleResult]:
    """Run some schedules in this process, once somebody asks for the first one's outcome."""
    yield from workers.run_batch(seeds, policies_share)


def _report(outcomes: Iterator[ScheduleResult], policies_share: float) -> int:
    began = time.monotonic()
    count = pods = moves = requests = failed = 0
    for outcome in outcomes:
        count, pods, requests = count + 1, pods + outcome.pods, requests + outcome.requests
        moves += outcome.moves
        if outcome.violations:
            failed += 1
            _tell(outcome, policies_share)
            if failed == _MOST_FAILED:
                break

    took = time.monotonic() - began
    print(
        f"simulation: {count} schedules in {took:.0f} s ({60 * count / took:.0f} a minute), "
        f"{pods} pods, {moves} moves, {requests} requests: {failed} failed"
    )
    return 1 if failed or not count else 0


def _tell(outcome: ScheduleResult, policies_share: float) -> None:
    seed = outcome.schedule.seed
    other = f" --policies {policies_share:g}" if policies_share != policies.SHARE else ""
    print(f'\nseed {seed}: make simulation SIMULATION="--seed {seed}{other}"')
    for line in outcome.schedule.lines():
        print(f"    {line}")

    for violation in outcome.violations[:_MOST_SHOWN]:
        print(f"  WRONG {str(violation)[:400]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
