"""Work that nobody may see a half of: who can wait waits, and who cannot has it done at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from tests.computing import BusyClock
from vnode.api.unfinished import UnfinishedWork

MANY = 50


def work(done: list[int], fails_at: int = MANY) -> Iterator[None]:
    for number in range(MANY):
        if number == fails_at:
            raise ValueError(number)

        done.append(number)
        yield


async def test_those_who_wait_let_others_have_their_turn_and_go_on_together() -> None:
    unfinished, done, seen = UnfinishedWork(), list[int](), list[int]()
    unfinished.begin(work(done))
    unfinished.begin(work(done))
    waiting = [asyncio.create_task(unfinished.over(BusyClock())) for _ in range(3)]
    while not unfinished.is_over:
        await asyncio.sleep(0)
        seen.append(len(done))

    await asyncio.gather(*waiting)
    assert done == [*range(MANY), *range(MANY)]
    assert max(after - before for before, after in itertools.pairwise(seen)) <= 4


async def test_who_cannot_wait_has_the_rest_done_at_once() -> None:
    unfinished, done = UnfinishedWork(), list[int]()
    unfinished.begin(work(done))
    waiting = asyncio.create_task(unfinished.over(BusyClock()))
    await asyncio.sleep(0)
    assert 0 < len(done) < MANY
    unfinished.finish()
    assert done == [*range(MANY)]
    await waiting


async def test_when_one_who_waits_is_cancelled_another_goes_on() -> None:
    unfinished, done = UnfinishedWork(), list[int]()
    unfinished.begin(work(done))
    first, second = (asyncio.create_task(unfinished.over(BusyClock())) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert done == [*range(MANY)]


def test_work_that_fails_is_not_gone_on_with() -> None:
    unfinished, done = UnfinishedWork(), list[int]()
    unfinished.begin(work(done, fails_at=3))
    unfinished.begin(work(done))
    with pytest.raises(ValueError, match="3"):
        unfinished.finish()

    unfinished.finish()
    assert unfinished.is_over
    assert done == [*range(3), *range(MANY)]
