"""Twenty gangs of sixteen in room for six, and half of one over in each target: the trap for gangs.

The same Jobs are first let in six at a time, by hand and without gangs, which is as fast as anybody
could do it here. All at once, as gangs, they must start about when they would then, none in part
and none in two targets, and be done about as soon; also if the agent of the source is killed.
"""

from __future__ import annotations

import asyncio
import random
import signal
from typing import Final

import pytest

from hack.fleetlib import progress
from hack.fleetlib.fleet import LocalFleet
from tests import kit
from tests.gangs import gang_jobs
from tests.gangs.gang_jobs import SIZE, JobTimes
from tests.kit import Fleet
from vnode.api import kinds
from vnode.kube.client import Client

COUNT: Final = 20
ROOM: Final = 6  # of them run at a time
HALF: Final = 3.0  # seconds for which too few of a gang may run
LATE: Final = 20.0  # seconds by which a gang may start later than its turn
LONGER: Final = 1.1  # by what factor all may take longer
KILLS: Final = 5
SPAN: Final = 110.0  # seconds in which they come, of some 150 that all take


@pytest.fixture(scope="module")
def serial() -> JobTimes:
    """Hold what was measured without gangs, once it was."""
    return JobTimes()


async def killing(fleet: Fleet, source: Client, dice: random.Random) -> None:
    """Kill the agent at random moments, once all pods are there, and start it again each time."""
    await kit.until(source, kinds.PODS, lambda pods: len(pods) == COUNT * SIZE, namespace="default")
    there, moments = LocalFleet(fleet.folder), sorted(dice.uniform(0, SPAN) for _ in range(KILLS))
    for before, at in zip([0.0, *moments], moments, strict=False):
        await asyncio.sleep(at - before)
        await asyncio.to_thread(there.stop, "c1", "agent", signal.SIGKILL)
        await asyncio.to_thread(there.start, "c1", "agent")


@pytest.mark.parametrize("kills", [False, True])
async def test_each_gang_starts_when_its_turn_comes(
    fleet: Fleet, source: Client, targets: dict[str, Client], serial: JobTimes, kills: bool
) -> None:
    seed = random.randrange(1 << 32)
    dice = random.Random(seed)
    order = dice.sample([f"g{number}x" for number in range(COUNT)], COUNT)
    if not serial.ended:
        await gang_jobs.run(source, targets, order, serial, together=False, at_once=ROOM)
        progress.say(f"six at a time: {serial}")

    gangs = JobTimes()
    async with asyncio.TaskGroup() as group:
        if kills:
            group.create_task(killing(fleet, source, dice))

        await gang_jobs.run(source, targets, order, gangs, together=True, at_once=COUNT)

    progress.say(f"seed {seed}, {'killed' if kills else 'calm'}: {gangs}")
    assert gangs.half < HALF
    assert all(len(places) == 1 for places in gangs.places.values())
    for turn, start in zip(serial.starts(), gangs.starts(), strict=True):
        assert start < turn + LATE

    assert gangs.makespan < LONGER * serial.makespan
