"""Does work in slices in the midst of which nobody may look at what it changes.

Who can wait has it gone on with, and waits until it is over; who cannot has the rest of it done at
once. So nothing is ever decided from a half of it, and where all wait nobody is held up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator

from vnode.api.clock import Clock
from vnode.api.slices import in_slices


class UnfinishedWork:
    """Works that were begun, one after the other; a step may neither wait nor ask for the end."""

    def __init__(self) -> None:
        self._works: deque[Iterator[None]] = deque()
        self._going_on = asyncio.Lock()  # one who waits goes on with it for all of them

    @property
    def is_over(self) -> bool:
        """Whether all that was begun is done."""
        return not self._works

    def begin(self, steps: Iterable[None]) -> None:
        """Take work, of which a step is done each time that `steps` is asked for the next."""
        self._works.append(iter(steps))

    def steps(self) -> Iterator[None]:
        """Go on with it until all is done, a step at a time."""
        while self._works:
            self._step()
            yield

    def finish(self) -> None:
        """Do all that is left at once."""
        for _ in self.steps():
            pass

    def drop(self) -> None:
        """Do nothing of what is left."""
        self._works.clear()

    async def over(self, clock: Clock) -> None:
        """Go on with it until all is done, and give way to others every few milliseconds."""
        if self.is_over:
            return

        async with self._going_on:
            async for _ in in_slices(self.steps(), clock):
                pass

    def _step(self) -> None:
        """Do a step of the first work; one that fails is not gone on with."""
        if next(self._works[0], _END) is _END:
            self._works.popleft()


_END = object()
