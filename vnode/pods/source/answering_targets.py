"""Goes through all that is known of targets that answer again, in slices.

A target may have thousands of pods, and may say that it is well as often as it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from vnode.api.clock import Clock
from vnode.api.slices import in_slices
from vnode.runtime.links import Link


class AnsweringTargets:
    """Goes through `steps` of each target that is added, one target after the other."""

    def __init__(self, steps: Callable[[Link], Iterable[None]], clock: Clock) -> None:
        self._steps = steps
        self._clock = clock
        self._waiting: dict[Link, None] = {}  # the oldest first
        self._woken = asyncio.Event()

    def add(self, link: Link) -> None:
        """Go through a target soon, once for all that has happened by then."""
        self._waiting[link] = None
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                link = next(iter(self._waiting))
                del self._waiting[link]
                async for _ in in_slices(self._steps(link), self._clock):
                    pass
