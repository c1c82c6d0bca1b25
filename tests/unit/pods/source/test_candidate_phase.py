"""One pending pod through its candidate phase: which targets it asks, and which one has it."""

from __future__ import annotations

import asyncio
import math

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import AT_ONCE, Target, is_silent, prefer, rejects, reserves
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import (
    ApiError,
    ConfigError,
    Denied,
    Invalid,
    NotGranted,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from vnode.pods.source import candidate_phase
from vnode.pods.source.candidates import CandidateSettings
from vnode.pods.source.unanswered_candidates import FIRST

pytestmark = pytest.mark.looptime


def allowed(target: Target) -> list[str]:
    """List the candidates that a target was asked to create with leave to run."""
    created = target.server.received("create", kinds.POD_CHAPERONS)
    return [each.name for each in created if keys.IS_ALLOWED in objects.annotations(each.body)]


@pytest.fixture
async def pair(clock: Clock) -> tuple[Target, Target]:
    """Return two targets, the first of which is ranked higher."""
    first, second = Target("c2", clock), Target("c3", clock)
    prefer(first, second)
    return first, second


Pair = tuple[Target, Target]


# --- one winner


async def test_a_pod_is_bound_by_one_request_to_the_target_that_has_reserved_its_place(
    clock: Clock, pair: Pair
) -> None:
    first, second = pair
    source = SourceCluster(clock, first, second)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        assert clock.monotonic() < AT_ONCE
        assert source.node_of("p") == first.node
        await asyncio.sleep(100)
        assert source.bindings == ["p"]
        assert (first.asked(), second.asked()) == (1, 0)


async def test_every_pod_of_a_burst_is_bound_by_one_request(clock: Clock, pair: Pair) -> None:
    source = SourceCluster(clock, *pair)
    names = [f"p{number}" for number in range(40)]
    async with source.running():
        for name in names:
            source.add(name)

        await source.until_bound(*names)
        await asyncio.sleep(100)
        assert sorted(source.bindings) == sorted(names)


async def test_of_two_targets_that_have_a_place_at_once_one_wins(clock: Clock, pair: Pair) -> None:
    source = SourceCluster(clock, *pair, settings=CandidateSettings(parallel=2))
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        await asyncio.sleep(100)
        assert source.bindings == ["p"]
        assert [target.asked("create") for target in pair] == [1, 1]


async def test_no_candidate_has_leave_to_run_before_its_pod_is_bound(
    clock: Clock, pair: Pair
) -> None:
    """The scheduler never gives it: that follows from the binding."""
    source = SourceCluster(clock, *pair, settings=CandidateSettings(parallel=2))
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        await asyncio.sleep(10)
        for target in pair:
            assert allowed(target) == []
            assert target.asked("patch") == 0
            assert keys.IS_ALLOWED not in objects.annotations(target.candidate("p"))


async def test_without_a_reservation_no_candidate_is_made_before_the_binding(
    clock: Clock, pair: Pair
) -> None:
    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("p", annotations={keys.NO_RESERVATION: ""})
        await source.until_bound("p")
        await asyncio.sleep(10)
        assert source.bindings == ["p"]
        assert [target.asked() for target in pair] == [0, 0]


async def test_the_first_of_two_silent_targets_to_find_a_place_wins(
    clock: Clock, pair: Pair
) -> None:
    first, second = pair
    first.answer = second.answer = is_silent
    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("p")
        await asyncio.sleep(1.5)
        assert (first.asked("create"), second.asked("create")) == (1, 0)
        await asyncio.sleep(1)
        assert second.asked("create") == 1
        reserves(second, second.candidate("p"))
        await source.until_bound("p")
        assert source.node_of("p") == second.node


# --- no place


async def test_after_a_rejection_the_next_target_is_asked_at_once(clock: Clock, pair: Pair) -> None:
    first, second = pair
    first.answer = rejects
    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        assert clock.monotonic() < AT_ONCE
        assert source.node_of("p") == second.node


async def test_once_all_have_rejected_a_pod_its_user_is_told_at_once(
    clock: Clock, pair: Pair
) -> None:
    for target in pair:
        target.answer = rejects

    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("p")
        await source.until_said("p", "no room here")
        assert clock.monotonic() < AT_ONCE
        assert (objects.condition(source.pod("p"), "PodScheduled") or {})["message"] == (
            "0/2 targets: c2, c3: no room here"
        )


async def test_a_target_that_has_rejected_a_pod_may_still_have_it(clock: Clock, pair: Pair) -> None:
    """Its autoscaler has added a node, say."""
    first, second = pair
    first.answer, second.answer = rejects, is_silent
    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("p")
        await asyncio.sleep(1)
        reserves(first, first.candidate("p"))
        await source.until_bound("p")
        assert source.node_of("p") == first.node
        assert clock.monotonic() < 2


async def test_targets_that_say_nothing_are_given_up_when_patience_is_over(
    clock: Clock, pair: Pair
) -> None:
    first, second = pair
    first.answer = second.answer = is_silent
    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("p")
        await source.until_said("p", "no answer for 30 s")
        assert clock.monotonic() == pytest.approx(32, abs=1)


async def test_only_an_answer_about_a_pod_that_waits_shows_that_the_target_decides(
    clock: Clock,
) -> None:
    """What a target says of pods that run, it says without its scheduler, too."""
    target = Target("c2", clock)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("runs")
        await source.until_bound("runs")
        target.annotate(target.candidate("runs"), **{keys.IS_ALLOWED: "true"})  # by the source
        target.answer = is_silent
        source.add("p")
        await asyncio.sleep(10)
        target.report(target.candidate("runs"), {"phase": "Running"})
        await source.until_said("p", "no answer for 30 s")
        assert clock.monotonic() < 40  # it was not told another thing before
        source.add("q")
        await asyncio.sleep(10)
        target.answer = rejects
        source.add("other")
        await source.until_said("q", "not decided yet: the target answers about other pods")


async def test_what_was_said_when_the_pod_was_sent_is_added_to_why_it_waits(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    source.annotations[target.node] = "it has another ConfigMap of that name"
    async with source.running():
        source.add("p")
        await source.until_said("p", "no room here (it has another ConfigMap of that name)")


async def test_a_reservation_that_comes_late_wakes_the_pod_that_sleeps(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", "no room here")
        await asyncio.sleep(50)
        began = clock.monotonic()
        reserves(target, target.candidate("p"))
        await source.until_bound("p")
        assert clock.monotonic() - began < AT_ONCE


async def test_a_target_that_answers_one_candidate_after_the_other_is_not_silent(
    clock: Clock, pair: Pair
) -> None:
    first, second = pair
    first.answer = is_silent
    source = SourceCluster(clock, *pair)
    names = [f"p{number}" for number in range(5)]
    async with source.running():
        for name in names:
            source.add(name)

        for name in names:
            await asyncio.sleep(1.5)
            reserves(first, first.candidate(name))

        await source.until_bound(*names)
        assert second.asked("create") == 0


async def test_a_pod_that_waits_for_its_turn_at_a_slow_target_does_not_find_it_silent(
    clock: Clock, pair: Pair
) -> None:
    first, second = pair
    first.answer = is_silent
    first.server.fail(None, verb="create", delay=1, times=None)
    source = SourceCluster(clock, *pair)
    async with source.running():
        for number in range(48):
            source.add(f"p{number}")

        await asyncio.sleep(2.5)
        assert len(first.created_at) == FIRST
        assert second.asked("create") == 0
        await asyncio.sleep(1)
        assert second.asked("create") > 0


# --- candidates that cannot be created


@pytest.mark.parametrize("error", [Denied(403, "", "no quota"), Invalid(422, "", "no such class")])
async def test_a_target_that_refuses_a_candidate_is_not_asked_without_end(
    clock: Clock, error: ApiError
) -> None:
    target = Target("c2", clock)
    target.server.fail(error, verb="create", times=None)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", error.message)
        assert clock.monotonic() < AT_ONCE
        await asyncio.sleep(60)
        assert target.asked("create") == 1


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("connection reset"),
        ServerError(503, "", "no leader"),
        TooManyRequests(429, "", "slow down"),
        Denied(401, "Unauthorized", "Unauthorized"),
    ],
)
async def test_what_may_pass_is_tried_again_after_a_back_off(
    clock: Clock, error: Unreachable | ApiError
) -> None:
    target = Target("c2", clock)
    target.server.fail(error, verb="create")
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        assert 0.5 < clock.monotonic() < 3


async def test_a_candidate_whose_creation_was_not_answered_is_found(clock: Clock) -> None:
    target = Target("c2", clock, is_silent)
    target.server.fail(Unreachable("connection reset"), verb="create", after=True)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(10)
        reserves(target, target.candidate("p"))
        await source.until_bound("p")
        assert len(target.created_at) == 1


async def test_a_creation_that_hangs_is_given_up_when_the_pod_is_bound(
    clock: Clock, pair: Pair
) -> None:
    first, second = pair
    hung = first.server.fail(None, verb="create", delay=math.inf)
    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        assert source.node_of("p") == second.node
        assert clock.monotonic() < 3
        hung.clear()
        await asyncio.sleep(10)
        assert first.find("p") is None


async def test_a_pod_whose_secrets_may_not_follow_yet_is_tried_again_soon() -> None:
    assert candidate_phase._is_passing(NotGranted("label that namespace in the target"))
    assert not candidate_phase._is_passing(ConfigError("rename one of them"))
