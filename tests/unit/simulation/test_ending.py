"""An agent may end at any moment: its parts end one by one, and those that are left go on telling.

Whole agents in memory are ended at many moments: nothing may be logged as an error, and no
coroutine may be left that nobody awaits (warnings are errors in tests).
"""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import suppress

import pytest

from tests.memory_streams import MemoryStreams
from tests.simulation import loop
from tests.simulation.agents import MemoryConnection, SimulatedAgent, SimulatedReplica
from tests.simulation.clusters import (
    SimulatedCluster,
    prepare_source,
    prepare_target,
    target_key,
)
from vnode.scheduling import registry

STEPS_OF_AN_END = 40
"""More steps of the event loop than an agent takes to end: 29; the test says when they are not."""


@pytest.fixture(autouse=True)
def own_plugins_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "installed", list)  # which reads the disk


def agent_of(targets: int) -> tuple[SimulatedAgent, SimulatedReplica, SimulatedCluster]:
    """Return the agent of a source with so many targets, which runs, and one more target."""
    source, *others = (
        SimulatedCluster(f"c{n}", random.Random(1), 0.01) for n in range(1, targets + 3)
    )
    prepare_source(source, [cluster.name for cluster in others])
    for cluster in others:
        prepare_target(cluster, [2])

    servers = {cluster.name: cluster.server for cluster in others[:targets]}
    made = SimulatedAgent(source, servers, 1, MemoryStreams({}))
    made.start()
    assert made.replica is not None
    return made, made.replica, others[-1]


async def steps(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def _end_after(seconds: float) -> bool:
    """End an agent so long after its start; return whether it has scheduled by then."""
    agent, _replica, _spare = agent_of(targets=2)
    await asyncio.sleep(seconds)
    running = {task.get_name() for task in asyncio.all_tasks()}
    await agent.kill()
    return "scheduler" in running


def test_it_may_end_while_it_starts(caplog: pytest.LogCaptureFixture) -> None:
    """A request takes up to ten milliseconds."""
    schedules = [loop.run(_end_after(number * 0.0015)) for number in range(100)]
    assert not schedules[0]
    assert schedules[-1], "an agent takes longer to start: try more moments"
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []


async def _connect_while_it_ends(number: int) -> bool:
    """End an agent, and publish the link of a target so many steps later; True if it runs yet."""
    agent, replica, spare = agent_of(targets=1)
    await asyncio.sleep(5)
    shared = replica._shared
    connection = MemoryConnection(
        spare.server, target_key(spare.name), shared.identity, shared.links, shared
    )
    ending = asyncio.create_task(agent.kill())
    await steps(number)
    ended = ending.done()
    connecting = asyncio.create_task(connection.run())
    await ending
    await asyncio.sleep(1)
    connecting.cancel()
    with suppress(asyncio.CancelledError):
        await connecting

    return not ended


def test_a_target_may_connect_at_any_moment_of_the_end(caplog: pytest.LogCaptureFixture) -> None:
    before = [loop.run(_connect_while_it_ends(number)) for number in range(STEPS_OF_AN_END)]
    assert before[0]
    assert not before[-1], "an agent takes more steps to end: try more moments"
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []
