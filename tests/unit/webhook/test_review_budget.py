"""Whoever creates costly pods without a pause has some a second, and nobody else waits."""

from __future__ import annotations

import asyncio

import pytest

from vnode.api.clock import Clock
from vnode.webhook.review_budget import BURST, SHARE, ReviewBudget

pytestmark = pytest.mark.looptime


class Reviews:
    """Reviews that take as long as the test says, and when each was answered."""

    def __init__(self, clock: Clock) -> None:
        self.budget = ReviewBudget(clock)
        self.answered: list[tuple[str, float]] = []
        self._clock = clock

    async def one(self, namespace: str, seconds: float) -> None:
        async with self.budget.wait(namespace):
            self.budget.charge(namespace, seconds)
            self.answered.append((namespace, self._clock.monotonic()))

    def times(self, namespace: str) -> list[float]:
        return [when for name, when in self.answered if name == namespace]


async def test_costly_reviews_are_answered_at_the_pace_of_a_share(clock: Clock) -> None:
    reviews = Reviews(clock)
    async with asyncio.TaskGroup() as group:
        for _ in range(200):
            group.create_task(reviews.one("busy", 0.01))

        await asyncio.sleep(0.5)
        await reviews.one("quiet", 0.01)

    times = reviews.times("busy")
    assert times[0] == times[round(BURST / 0.01) - 1]  # a burst passes at once
    assert times[-1] == pytest.approx((200 * 0.01 - BURST) / SHARE, abs=0.2)
    assert reviews.times("quiet") == [pytest.approx(0.5)]


async def test_ordinary_pods_never_wait(clock: Clock) -> None:
    reviews = Reviews(clock)
    for _ in range(5000):
        await reviews.one("team", 0.0002)
        await clock.sleep(0.002)

    assert reviews.times("team")[-1] == pytest.approx(5000 * 0.002, rel=0.01)


async def test_who_stops_waiting_leaves_nothing(clock: Clock) -> None:
    reviews = Reviews(clock)
    await reviews.one("busy", 10.0)
    waiting = [asyncio.create_task(reviews.one("busy", 1.0)) for _ in range(3)]
    await asyncio.sleep(1)
    assert reviews.budget.waiting("busy") == 3
    for task in waiting:
        task.cancel()

    await asyncio.wait(waiting)
    assert reviews.budget.waiting("busy") == 0
    assert len(reviews.answered) == 1
