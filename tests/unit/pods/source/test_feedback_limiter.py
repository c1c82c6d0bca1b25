"""How often, and how much, a target has the source's API server write: whatever it reports."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import background
from tests.unit.conftest import LoopClock
from tests.unit.pods.bound_pods import RUNNING, BoundPodsEnvironment, BoundTarget
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.pods.source.feedback_limiter import FeedbackLimiter
from vnode.runtime import write_limits
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime

MOST = write_limits.PODS.burst + 10 * write_limits.PODS.rate + 1
"""Writes of one pod in ten seconds."""


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock)


@pytest.fixture
async def two(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock, 2)


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
    env: BoundPodsEnvironment, count: int, seconds: float
) -> None:
    env.target.add(env.add())
    before = delayed()
    async with env.running():
        await flood(env.target, count, seconds)
        assert env.status()["message"] != f"change {count - 1}"
        await asyncio.sleep(2)
        assert env.status()["message"] == f"change {count - 1}"
        assert 10 < len(env.written()) <= MOST
        assert delayed() > before


async def test_annotations_and_status_that_change_together_are_both_written_in_turn(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add())
    async with env.running():
        for number in range(500):
            env.target.annotate(beat=str(number))
            env.target.report(message=f"change {number}")
            await asyncio.sleep(0.02)

        assert len(env.written()) <= MOST + 1
        await asyncio.sleep(4)
        assert env.status()["message"] == "change 499"
        assert objects.annotations(env.pod() or {})["beat"] == "499"


async def test_a_state_that_is_taken_back_while_it_waits_is_not_written_nor_waited_for(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add())
    async with env.running():
        await flood(env.target, 30, 0.6)
        held = env.status()["message"]
        env.target.report(message="another")
        await asyncio.sleep(0.1)
        env.target.report(message=held)
        before = len(env.written())
        await asyncio.sleep(5)
        assert len(env.written()) == before
        assert env.status()["message"] == held
        await env.delete()
        env.target.remove()
        await asyncio.sleep(5)
        assert env.pod() is None


async def test_the_last_status_of_a_pod_that_ends_is_written_before_it_goes(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(metadata={"finalizers": ["example.com/keep", "x"]}))
    async with env.running():
        await flood(env.target, 100, 2)
        await env.delete()
        await asyncio.sleep(0.05)
        env.target.report(phase="Failed", message="the end")
        env.target.remove()
        await asyncio.sleep(0.05)
        assert env.status()["message"] != "the end"
        await asyncio.sleep(5)
        assert env.status()["message"] == "the end"


async def test_a_pod_whose_delegate_was_deleted_goes_once_its_last_status_is_written(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add())
    async with env.running():
        await flood(env.target, 100, 2)
        env.target.report(message="the end")
        env.target.annotate("vnode.dev/delegate-deleted")
        await asyncio.sleep(5)
        assert env.is_ending()
        assert env.status()["message"] == "the end"


async def test_a_pod_that_ended_leaves_no_debt_to_its_successor(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add())
    async with env.running():
        await flood(env.target, 100, 2)
        env.target.remove()
        env.source.remove(kinds.PODS, "web", "shop")
        await asyncio.sleep(1)
        env.target.add(env.add())
        before = delayed()
        await flood(env.target, 5, 0.5)
        assert delayed() == before


# --- pods beside each other


@pytest.mark.no_cover
async def test_a_target_that_floods_does_not_delay_the_feedback_of_another(
    two: BoundPodsEnvironment,
) -> None:
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
    env = BoundPodsEnvironment(LoopClock())
    env.target.add(env.add())
    before = delayed()
    async with env.running():
        scheduled = {"type": "PodScheduled", "status": "True"}
        env.target.report(phase="Pending", conditions=[scheduled])
        for number, (gap, kind) in enumerate(containers):
            await asyncio.sleep(gap)
            env.target.report(phase="Pending", message=f"{kind} {number}")

        env.target.report(phase="Running", conditions=[scheduled])
        await asyncio.sleep(0.2)
        env.target.annotate(cni="done")
        env.target.report(**RUNNING)
        await asyncio.sleep(0.1)
        assert objects.condition(env.pod() or {}, "Ready")

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
