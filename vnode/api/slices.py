"""Divides long work into slices, between which everything else in the event loop has its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

from vnode.api.clock import Clock

_SLICE: Final = 0.005  # seconds
T = TypeVar("T")


class Slices:
    """Knows for how long the present slice of some work has taken; made when that begins."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = clock.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether it has been a few milliseconds since others had their turn."""
        return self._clock.monotonic() - self._begun >= _SLICE

    async def give_way(self) -> None:
        """Let all others have their turn, if it has been a few milliseconds since they had."""
        if self.is_over:
            await asyncio.sleep(0)
            self._begun = self._clock.monotonic()


async def in_slices(items: Iterable[T], clock: Clock) -> AsyncIterator[T]:
    """Yield all items; what takes longer than a few milliseconds gives way to others in between."""
    slices = Slices(clock)
    for item in items:
        yield item
        await slices.give_way()
