"""Pods that fit nowhere, or go before they run, are tried in a target at a bounded rate."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.targets import AT_ONCE, Target, rejects, reserves
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.pods.source import candidates
from vnode.pods.source.unanswered_candidates import MOST, VAIN_AT_ONCE, VAIN_RATE

pytestmark = pytest.mark.looptime

MANY = 200
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}


async def test_pods_that_fit_nowhere_are_sent_a_few_a_second(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        for number in range(MANY):
            source.add(f"p{number}")

        await asyncio.sleep(AT_ONCE)
        assert target.asked("create") <= MOST + VAIN_AT_ONCE
        await asyncio.sleep(10)
        assert target.asked("create") <= MOST + VAIN_AT_ONCE + 11 * VAIN_RATE
        await asyncio.sleep(MANY / VAIN_RATE)
        assert all(target.find(f"p{number}") for number in range(MANY))


async def test_pods_that_all_get_places_do_not_wait(clock: Clock) -> None:
    target = Target("c2", clock, reserves)
    source = SourceCluster(clock, target)
    async with source.running():
        for number in range(MANY):
            source.add(f"p{number}")

        await source.until_bound(*(f"p{number}" for number in range(MANY)))
        assert clock.monotonic() < 5


async def test_pods_that_go_before_they_run_are_sent_a_few_a_second(clock: Clock) -> None:
    target = Target("c2", clock, reserves)
    source = SourceCluster(clock, target)
    async with source.running():
        for number in range(10 * MANY):
            source.add(f"p{number}")
            await asyncio.sleep(0.01)
            if number >= MOST:
                gone = f"p{number - MOST}"
                source.remove(gone)
                if (candidate := target.find(gone)) is not None:
                    target.server.remove(
                        kinds.POD_CHAPERONS, objects.name(candidate), objects.namespace(candidate)
                    )

        lasted = clock.monotonic()
        assert target.asked("create") < 2 * (MOST + VAIN_AT_ONCE + lasted * VAIN_RATE)


async def test_pods_that_are_changed_before_a_target_answers_are_sent_a_few_a_second(
    clock: Clock,
) -> None:
    """Each change has a candidate made anew: those before it were in vain."""
    busy = 0.5  # seconds until the target says anything of a candidate

    def rejects_late(target: Target, candidate: Object) -> None:
        def answer() -> None:
            name, namespace = objects.name(candidate), objects.namespace(candidate)
            found = target.server.find(kinds.POD_CHAPERONS, name, namespace)
            if found is not None and objects.uid(found) == objects.uid(candidate):
                rejects(target, candidate)

        asyncio.get_running_loop().call_later(busy, answer)

    target = Target("c2", clock, rejects_late)
    source = SourceCluster(clock, target)
    async with source.running():
        for number in range(MANY):
            source.add(f"p{number}")

        for number in range(2500):
            source.change(f"p{number % MANY}", metadata={"labels": {"n": str(number)}})
            await asyncio.sleep(0.02)

        assert target.asked("create") < MOST + VAIN_AT_ONCE + clock.monotonic() * VAIN_RATE


@pytest.mark.parametrize(
    ("annotations", "status", "expected"),
    [
        ({}, {}, True),
        ({keys.IS_RESERVED: "true"}, {"phase": "Pending"}, True),
        ({keys.IS_RESERVED: "true"}, {"phase": "Running"}, False),
        ({}, {"phase": "Failed"}, False),
        ({}, {"conditions": [REFUSED]}, False),
    ],
)
def test_a_candidate_that_has_run_or_was_refused_counts_no_more(annotations, status, expected):
    chaperon = {"metadata": {"annotations": annotations}, "status": status}
    assert candidates.is_in_vain(chaperon) == expected
