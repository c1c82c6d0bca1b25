"""A pod that waits for targets that connect goes to the first that may take it, soon after."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import Target
from vnode.api import kinds
from vnode.api.clock import Clock

pytestmark = pytest.mark.looptime

LONG = 8.2
"""Seconds after which, with back-offs that double, the next attempt would be at 15."""


def patches(source: SourceCluster) -> int:
    """Count the writes to the status of pods."""
    asked = source.server.received(kind=kinds.PODS)
    return sum(r.verb == "patch" and r.subresource == "status" for r in asked)


async def add_and_try(source: SourceCluster) -> None:
    """Create a pod and have it tried again and again, for LONG."""
    source.add("p")
    for _ in range(24):
        await asyncio.sleep(LONG / 24)
        source.queue.requeue("p")


async def test_targets_of_other_namespaces_that_connect_have_no_pod_tried(clock: Clock) -> None:
    own = Target("c2", clock)
    others = [Target(f"o{n}", clock, home=f"team-{n}") for n in range(28)]
    source = SourceCluster(clock, own, *others)
    for target in source.targets:
        target.connect()

    async with source.running():
        for target in others:
            source.links.remove(target.link)

        source.add("p")
        for target in others:
            await asyncio.sleep(LONG / len(others))
            source.links.add(target.link)
            target.set_healthy(True)

        assert patches(source) == 1
        own.set_healthy(True)
        began = clock.monotonic()
        await source.until_bound("p")
        assert clock.monotonic() - began < 0.5


async def test_attempts_while_targets_connect_make_no_pod_wait_for_longer(clock: Clock) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target)
    target.connect()
    async with source.running():
        await add_and_try(source)

        assert patches(source) <= 2
        target.set_healthy(True)
        began = clock.monotonic()
        await source.until_bound("p")
        assert clock.monotonic() - began < 1.5


async def test_a_target_that_does_not_answer_has_back_offs_grow_as_ever(clock: Clock) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target)
    target.set_healthy(False)
    cycles = list[float]()
    async with source.running():
        schedule = source.framework.schedule

        def count(*args: object) -> object:
            cycles.append(clock.monotonic())
            return schedule(*args)  # type: ignore[arg-type]

        source.framework.schedule = count  # type: ignore[assignment]
        await add_and_try(source)

    assert len(cycles) <= 4
