"""What is asked for again and again is done in rounds, and who waits does not wait for all."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from vnode.api.clock import Clock
from vnode.runtime.rounds import WorkRounds

pytestmark = pytest.mark.looptime


class Work:
    """Takes a second, and notes when it began."""

    def __init__(self, clock: Clock) -> None:
        self.began: list[float] = []
        self.is_wanted_always = False
        self.rounds = WorkRounds(self.do, clock)
        self._clock = clock

    async def do(self) -> None:
        self.began.append(self._clock.monotonic())
        if self.is_wanted_always:
            self.rounds.ask()

        await self._clock.sleep(1)


async def test_what_is_asked_for_meanwhile_is_one_round_after_a_pause(clock: Clock) -> None:
    work = Work(clock)
    async with background.running(work.rounds.run()):
        begun = clock.monotonic()
        for _ in range(4):
            work.rounds.ask()
            await asyncio.sleep(0.1)

        await asyncio.sleep(60)
        assert work.began == [begun, begun + 4]


async def test_who_waits_does_not_wait_for_what_others_ask_for_later(clock: Clock) -> None:
    work = Work(clock)
    work.is_wanted_always = True
    async with background.running(work.rounds.run()):
        await work.rounds.done()
        assert not work.began, "nothing was asked for"
        work.rounds.ask()
        await work.rounds.done()
        assert len(work.began) == 1
        work.rounds.ask()
        await work.rounds.done()
        assert len(work.began) == 2
