"""How many candidates of a namespace may be created before their target has answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.pods.source.unanswered_candidates import (
    FEWEST,
    FIRST,
    LONGEST,
    MOST,
    MOST_OWED,
    SHARED_FIRST,
    SHARED_FOR,
    SHARED_VAIN_RATE,
    SHARED_WAITING,
    VAIN_AT_ONCE,
    VAIN_RATE,
    WAITING,
    UnansweredCandidates,
)

pytestmark = pytest.mark.looptime

MANY = 5 * MOST


def pod(name: str, namespace: str = "busy", priority: int = 0) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"priority": priority}}


class Asking:
    """Pods that ask whether they may begin, in the order in which they may."""

    def __init__(self, clock: Clock) -> None:
        self.begun: list[str] = []
        self.waits: dict[str, float] = {}
        self.unanswered = UnansweredCandidates(clock, self.waits.__setitem__)
        self._tasks: list[asyncio.Task[None]] = []

    async def ask(self, *pods: Object) -> None:
        self._tasks += [asyncio.create_task(self._begin(each)) for each in pods]
        await asyncio.sleep(0.01)

    async def answer(self, *names: str, is_placed: bool) -> None:
        for name in names:
            self.unanswered.answer(f"busy/{name}", is_placed=is_placed)

        await asyncio.sleep(0.01)

    async def end(self, index: int | None = None) -> None:
        tasks = self._tasks if index is None else [self._tasks[index]]
        for task in tasks:
            task.cancel()

        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self, pod: Object) -> None:
        await self.unanswered.begin(pod)
        self.begun.append(objects.name(pod))


@pytest.fixture
async def asking(clock: Clock) -> AsyncIterator[Asking]:
    asking = Asking(clock)
    yield asking
    await asking.end()


async def test_few_begin_before_the_target_has_answered(asking: Asking) -> None:
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    assert asking.begun == [f"p{n}" for n in range(FIRST)]


async def test_pods_of_another_namespace_begin_at_once(asking: Asking) -> None:
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    await asking.ask(pod("other", "quiet"))
    assert asking.begun[-1] == "other"
    assert asking.waits["quiet"] == 0.0


async def test_a_place_for_one_lets_the_next_begin(asking: Asking) -> None:
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    for number in range(MANY):
        await asking.answer(f"p{number}", is_placed=True)
        assert len(asking.begun) - number - 1 <= MOST

    assert len(asking.begun) == MANY


async def test_no_more_than_a_few_wait_for_a_target_that_is_busy(asking: Asking) -> None:
    """A target that takes 0.1 s for each, one after the other: others wait for what is there."""
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    for number in range(MANY):
        await asyncio.sleep(0.1)
        await asking.answer(f"p{number}", is_placed=True)
        if 2 * FIRST <= number < MANY - 2 * FIRST:
            assert 1 < len(asking.begun) - number <= WAITING + 3

    assert len(asking.begun) == MANY


async def test_many_are_under_way_to_a_target_that_is_far_away(asking: Asking) -> None:
    """Each takes half a second, however many there are."""
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    answered = 0
    while len(asking.begun) < MANY:
        names, answered = asking.begun[answered:], len(asking.begun)
        await asyncio.sleep(0.5)
        await asking.answer(*names, is_placed=True)

    assert len(names) == MOST


async def test_a_burst_beside_others_has_one_that_waits(asking: Asking, clock: Clock) -> None:
    """A target that takes 0.1 s for each, two at once; somebody else's pods get places there."""

    async def others() -> None:
        while True:
            await asking.unanswered.begin(pod("other", "quiet"))
            await clock.sleep(0.1)
            asking.unanswered.answer("quiet/other", is_placed=True)

    other = asyncio.create_task(others())
    await asyncio.sleep(0.2)
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    assert len(asking.begun) == SHARED_FIRST
    unanswered = []
    for number in range(0, MANY, 2):
        await asyncio.sleep(0.1)
        unanswered.append(len(asking.begun) - number)
        await asking.answer(f"p{number}", f"p{number + 1}", is_placed=True)

    other.cancel()
    assert len(asking.begun) == MANY
    assert max(unanswered) <= 2 + SHARED_WAITING + 1


async def test_those_that_are_refused_are_fewer_at_once(asking: Asking) -> None:
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    await asking.answer(*asking.begun[: FIRST - FEWEST], is_placed=False)
    assert len(asking.begun) == FIRST
    await asking.answer(asking.begun[FIRST - FEWEST], is_placed=False)
    await asyncio.sleep(LONGEST / 2)  # it has a rate as well
    assert len(asking.begun) == FIRST + 1


async def test_those_that_are_refused_have_a_rate(asking: Asking, clock: Clock) -> None:
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    answered = 0
    while len(asking.begun) < MANY:
        names, answered = asking.begun[answered:], len(asking.begun)
        await asking.answer(*names, is_placed=False)

    assert clock.monotonic() == pytest.approx((MANY - VAIN_AT_ONCE) / VAIN_RATE, rel=0.2)


async def test_those_that_are_refused_have_a_lower_rate_while_others_get_places(
    asking: Asking, clock: Clock
) -> None:
    async def refuse_for(seconds: float) -> int:
        """Return how many pods of the busy namespace began, where all are refused."""
        until, before = clock.monotonic() + seconds, len(asking.begun)
        while clock.monotonic() < until:
            await asyncio.sleep(0.1)
            await asking.answer(*asking.begun, is_placed=False)

        return len(asking.begun) - before

    async def place(name: str) -> None:
        await asking.ask(pod(name, "quiet"))
        asking.unanswered.answer(f"quiet/{name}", is_placed=True)

    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    await refuse_for(2 * MOST_OWED)
    assert await refuse_for(SHARED_FOR) == pytest.approx(SHARED_FOR * VAIN_RATE, rel=0.2)
    await place("other")
    assert await refuse_for(SHARED_FOR) == pytest.approx(SHARED_FOR * SHARED_VAIN_RATE, rel=0.2)
    await refuse_for(MOST_OWED)
    assert await refuse_for(MOST_OWED) == pytest.approx(MOST_OWED * VAIN_RATE, rel=0.2)


async def test_those_whose_pods_end_before_they_run_have_that_rate(
    asking: Asking, clock: Clock
) -> None:
    for _ in range(10 * VAIN_AT_ONCE):
        asking.unanswered.note_vain("busy")

    await asking.ask(pod("later"), pod("other", "quiet"))
    assert asking.begun == ["other"]
    await asyncio.sleep(MOST_OWED + 1 / VAIN_RATE)
    assert asking.begun == ["other", "later"]


async def test_a_higher_priority_waits_for_less(asking: Asking) -> None:
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    await asking.ask(pod("urgent", priority=5))
    await asking.answer("p0", is_placed=True)
    assert asking.begun[FIRST] == "urgent"


async def test_a_target_that_is_silent_stops_nobody_for_good(asking: Asking) -> None:
    await asking.ask(*(pod(f"p{n}") for n in range(MANY)))
    await asyncio.sleep(LONGEST + 0.1)
    assert len(asking.begun) == 2 * FIRST


async def test_whoever_stops_to_wait_keeps_nobody_waiting(asking: Asking) -> None:
    await asking.ask(*(pod(f"p{n}") for n in range(FIRST + 2)))
    await asking.end(FIRST)
    asking.unanswered.settle("busy/p0")
    await asyncio.sleep(0.01)
    assert asking.begun[-1] == f"p{FIRST + 1}"


async def test_one_that_is_made_anew_counts_once(asking: Asking) -> None:
    await asking.ask(*(pod("p0") for _ in range(FIRST)))
    await asking.ask(*(pod(f"p{n}") for n in range(1, FIRST)))
    assert len(set(asking.begun)) == FIRST
    await asking.ask(pod("one-more"))
    assert "one-more" not in asking.begun
    await asking.answer("p0", is_placed=True)
    assert "one-more" in asking.begun
