"""How often, and how much, a target has the source's API server write: whatever it reports."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import background
from tests.unit.conftest import LoopClock
from tests.unit.pods.bound_pods import RUNNING, BoundTarget, World
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.pods.source.feedback_limiter import FeedbackLimiter
from vnode.runtime import write_limits
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime

MOST = write_limits.PODS.burst + 10 * write_limits.PODS.rate + 1
"""Writes of one pod in ten seconds."""


@pytest.fixture
async def world(clock: Clock) -> World:
    return World(clock)


@pytest.fixture
async def two(clock: Clock) -> World:
    return World(clock, 2)


def delayed(resource: str = "pods") -> float:
    return (
        metrics.REGISTRY.get_sample_value("vnode_writes_delayed_total", {"resource": resource})
        or 0.0
    )


async def flood(target: BoundTarget, count: int, seconds: float, name: str = "web") -> None:
    for number in range(count):
        target.report(name, **RUNNING, message=f"change {number}")
        await asyncio.sleep(seconds / count)


# --- one pod


@pytest.mark.parametrize(("count", "seconds"), [(1000, 10), (11, 0.2)])
async def test_many_changes_become_a_few_writes_and_the_last_state_is_there(
    world: World, count: int, seconds: float
) -> None:
    world.target.add(world.add())
    before = delayed()
    async with world.running():
        await flood(world.target, count, seconds)
        assert world.status()["message"] != f"change {count - 1}"
        await asyncio.sleep(2)
        assert world.status()["message"] == f"change {count - 1}"
        assert 10 < len(world.written()) <= MOST
        assert delayed() > before


async def test_annotations_and_status_that_change_together_are_both_written_in_turn(
    world: World,
) -> None:
    world.target.add(world.add())
    async with world.running():
        for number in range(500):
            world.target.annotate(beat=str(number))
            world.target.report(message=f"change {number}")
            await asyncio.sleep(0.02)

        assert len(world.written()) <= MOST + 1
        await asyncio.sleep(4)
        assert world.status()["message"] == "change 499"
        assert objects.annotations(world.pod() or {})["beat"] == "499"


async def test_a_state_that_is_taken_back_while_it_waits_is_not_written_nor_waited_for(
    world: World,
) -> None:
    world.target.add(world.add())
    async with world.running():
        await flood(world.target, 30, 0.6)
        held = world.status()["message"]
        world.target.report(message="another")
        await asyncio.sleep(0.1)
        world.target.report(message=held)
        before = len(world.written())
        await asyncio.sleep(5)
        assert len(world.written()) == before
        assert world.status()["message"] == held
        await world.delete()
        world.target.remove()
        await asyncio.sleep(5)
        assert world.pod() is None


async def test_the_last_status_of_a_pod_that_ends_is_written_before_it_goes(world: World) -> None:
    world.target.add(world.add(metadata={"finalizers": ["example.com/keep", "x"]}))
    async with world.running():
        await flood(world.target, 100, 2)
        await world.delete()
        await asyncio.sleep(0.05)
        world.target.report(phase="Failed", message="the end")
        world.target.remove()
        await asyncio.sleep(0.05)
        assert world.status()["message"] != "the end"
        await asyncio.sleep(5)
        assert world.status()["message"] == "the end"


async def test_a_pod_whose_delegate_was_deleted_goes_once_its_last_status_is_written(
    world: World,
) -> None:
    world.target.add(world.add())
    async with world.running():
        await flood(world.target, 100, 2)
        world.target.report(message="the end")
        world.target.annotate("vnode.dev/delegate-deleted")
        await asyncio.sleep(5)
        assert world.is_ending()
        assert world.status()["message"] == "the end"


async def test_a_pod_that_ended_leaves_no_debt_to_its_successor(world: World) -> None:
    world.target.add(world.add())
    async with world.running():
        await flood(world.target, 100, 2)
        world.target.remove()
        world.source.remove(kinds.PODS, "web", "shop")
        await asyncio.sleep(1)
        world.target.add(world.add())
        before = delayed()
        await flood(world.target, 5, 0.5)
        assert delayed() == before


# --- pods beside each other


async def test_a_target_that_floods_does_not_delay_the_feedback_of_another(two: World) -> None:
    loud, calm = two.targets
    for number in range(50):
        loud.add(two.add(f"loud-{number}"))

    calm.add(two.add("calm", node=calm.node))
    async with two.running():

        async def shout() -> None:
            for _ in range(50):
                for number in range(50):
                    await flood(loud, 1, 0.002, f"loud-{number}")

        async with background.running(shout()):
            for number in range(10):
                calm.report("calm", **RUNNING, message=f"calm {number}")
                await asyncio.sleep(0.1)
                assert two.status("calm")["message"] == f"calm {number}"
                await asyncio.sleep(0.4)


START = st.lists(
    st.tuples(st.floats(0.0, 3.0), st.sampled_from(["init", "main"])), min_size=1, max_size=8
)


@settings(max_examples=25)
@given(containers=START)
async def test_a_pod_that_starts_never_waits(containers: list[tuple[float, str]]) -> None:
    """It is scheduled, its containers are created, start one after the other, and are ready."""
    world = World(LoopClock())
    world.target.add(world.add())
    before = delayed()
    async with world.running():
        scheduled = {"type": "PodScheduled", "status": "True"}
        world.target.report(phase="Pending", conditions=[scheduled])
        for number, (gap, kind) in enumerate(containers):
            await asyncio.sleep(gap)
            world.target.report(phase="Pending", message=f"{kind} {number}")

        world.target.report(phase="Running", conditions=[scheduled])
        await asyncio.sleep(0.2)
        world.target.annotate(cni="done")
        world.target.report(**RUNNING)
        await asyncio.sleep(0.1)
        assert objects.condition(world.pod() or {}, "Ready")

    assert delayed() == before


# --- bytes


async def test_a_target_that_has_used_up_its_bytes_waits_and_no_other_does(clock: Clock) -> None:
    limiter, second = FeedbackLimiter(clock), int(write_limits.BYTES.rate)
    limiter.written("a", "ns/loud", write_limits.BYTES.burst + second)
    waits = [limiter.wait(pod, "ns/loud", lambda: 10 * second) for pod in ("b", "c", "b")]
    assert waits == [pytest.approx(11), pytest.approx(21), pytest.approx(11)]
    assert limiter.wait("x", "ns/calm", lambda: second) == 0

    await asyncio.sleep(11)
    assert limiter.wait("b", "ns/loud", lambda: 10 * second) == 0
    limiter.written("b", "ns/loud", 10 * second)
    assert limiter.wait("c", "ns/loud", lambda: 10 * second) == pytest.approx(10)
    assert limiter.wait("b", "ns/loud", lambda: 10 * second) == pytest.approx(20)
