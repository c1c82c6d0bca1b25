"""Whoever takes much keeps others waiting for one piece of work, and no more."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.runtime.fair_turns import FairTurns


class Processor:
    """Work that costs what the test says, and the order in which it was done."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.turns: FairTurns[str] = FairTurns(lambda: self.spent)
        self.done: list[str] = []

    async def work(self, key: str, cost: float) -> None:
        async with self.turns.take(key):
            self.spent += cost
            self.done.append(key)

        await asyncio.sleep(0)

    async def all(self, *works: tuple[str, float]) -> None:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for key, cost in works:
                group.create_task(self.work(key, cost))


async def test_one_key_has_all_turns_in_order_while_nobody_else_waits() -> None:
    processor = Processor()
    await processor.all(*[("a", 1.0)] * 5)
    assert processor.done == ["a"] * 5


async def test_a_key_that_comes_later_is_next() -> None:
    processor = Processor()
    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(processor.work("many", 0.03))

        await asyncio.sleep(0)
        await asyncio.sleep(0)
        before = len(processor.done)
        group.create_task(processor.work("one", 0.001))

    assert processor.done.index("one") <= before + 2


async def test_keys_have_equal_shares_of_the_time_whatever_a_piece_costs() -> None:
    processor, spent = Processor(), defaultdict[str, float](float)

    async def again_and_again(key: str, cost: float) -> None:
        while processor.spent < 50:
            async with processor.turns.take(key):
                processor.spent += cost
                spent[key] += cost

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for key, cost in (("dear", 0.1), ("cheap", 0.001), ("fair", 0.01)):
            for _ in range(3):
                group.create_task(again_and_again(key, cost))

    assert max(spent.values()) - min(spent.values()) < 1


async def test_a_pause_saves_nothing_up() -> None:
    """Else a namespace that was quiet for a day would have a day's turns."""
    processor = Processor()
    await processor.all(*[("busy", 1.0)] * 100)
    await processor.all(*[("quiet", 1.0)] * 10, *[("busy", 1.0)] * 10)
    last = processor.done[-20:]
    assert abs(last[:10].count("quiet") - 5) <= 1


async def test_work_that_fails_is_charged_and_ends_its_turn() -> None:
    processor = Processor()

    async def fail() -> None:
        async with processor.turns.take("a"):
            processor.spent += 5
            raise KeyError

    with pytest.raises(KeyError):
        await fail()

    await processor.all(("b", 1.0), ("a", 1.0), ("b", 1.0), ("b", 1.0))
    assert processor.done == ["b", "b", "b", "a"]


async def test_who_stops_waiting_takes_no_turn_and_leaves_nothing() -> None:
    processor = Processor()
    async with processor.turns.take("first"):
        waiting = [asyncio.create_task(processor.work("gone", 1.0)) for _ in range(3)]
        await asyncio.sleep(0)
        assert processor.turns.waiting("gone") == 3
        for task in waiting:
            task.cancel()

        await asyncio.wait(waiting)
        assert processor.turns.waiting("gone") == 0

    async with processor.turns.take("first"):
        given = asyncio.create_task(processor.work("gone", 1.0))
        await asyncio.sleep(0)

    given.cancel()  # when it has just been given its turn
    await asyncio.wait({given})
    await processor.all(("next", 1.0))
    assert processor.done == ["next"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), max_size=40))
def test_all_work_is_done_once_and_in_order_for_each_key(works: list[tuple[str, float]]) -> None:
    processor = Processor()
    asyncio.run(processor.all(*works))
    assert Counter(processor.done) == Counter(key for key, _cost in works)
