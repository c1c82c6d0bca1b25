"""What one namespace has in workloads keeps no other one waiting, nor the loop."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from tests import computing
from tests.computing import WorkingClock
from tests.unit.kueue.environment import KueueEnvironment, pod_set
from vnode.api import kinds

pytestmark = pytest.mark.looptime

LONGEST: Final = 0.05
"""Seconds that a callback may compute."""


async def test_a_namespace_of_many_workloads_keeps_no_other_waiting(clock: Any) -> None:
    env = KueueEnvironment(clock)
    env.room("t1", (0, 4, ""))
    for number in range(60):
        env.workload(f"a{number}", pod_set("main", 1), namespace="hostile")

    env.workload("z", pod_set("main", 1))
    async with env.answers():
        await asyncio.sleep(60)
        written = [each.name for each in env.server.received("patch", kinds.WORKLOADS)]
        assert len(written) == 61
        assert written.index("z") < 3


async def test_a_new_leader_reads_what_was_promised_in_steps(clock: Any) -> None:
    env = KueueEnvironment(clock)
    env.room("t1", *((0, 200, "") for _ in range(20)))
    for number in range(200):
        env.workload(f"w{number}", *(pod_set(f"s{each}", 1) for each in range(8)))
        env.let_in(f"w{number}", "t1")

    env.workload("new", pod_set("main", 1))
    env.clock = WorkingClock(clock)
    with computing.steps() as steps:
        async with env.answers() as checks:
            await asyncio.sleep(1)
            assert env.states("new") == ["Ready"]

    assert checks.promised.has("ns/w199")
    assert max(steps) < LONGEST


async def test_what_was_promised_long_ago_is_not_read_again(clock: Any) -> None:
    env = KueueEnvironment(clock)
    env.room("t1", (0, 4, ""))
    env.workload("old", pod_set("main", 4))
    env.let_in("old", "t1", seconds=301)
    env.workload("new", pod_set("main", 4))
    async with env.answers() as checks:
        await asyncio.sleep(1)
        assert env.states("old", "new") == ["Ready", "Ready"]
        assert not checks.promised.has("ns/old")


async def test_promises_of_many_kinds_of_pods_are_counted_in_steps(clock: Any) -> None:
    env = KueueEnvironment(clock)
    nodes = [(0, 64 + number, "") for number in range(60)]
    for number in range(20):
        env.room(f"t{number}", *nodes)

    for number in range(500):
        env.workload(f"w{number}", pod_set("main", 1, cpu=f"{100 + number}m"))
        env.let_in(f"w{number}", f"t{number % 20}")

    env.workload("new", pod_set("main", 60, cpu="93"))
    env.clock = WorkingClock(clock)
    with computing.steps() as steps:
        async with env.answers():
            await asyncio.sleep(30)
            assert "31 of 60 pods find a node" in env.entry("new")["message"]

    assert max(steps) < LONGEST
