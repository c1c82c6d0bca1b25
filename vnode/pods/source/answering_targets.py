"""Goes through all that is known of targets that answer again, in slices.

A target may have thousands of pods, and may say that it is well as often as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vnode.api.clock import Clock
from vnode.api.slices import in_slices
from vnode.runtime.links import Link
from vnode.runtime.rounds import WorkRounds


class AnsweringTargets:
    """Goes through `steps` of each target that is added, one target after the other."""

    def __init__(self, steps: Callable[[Link], Iterable[None]], clock: Clock) -> None:
        self._steps = steps
        self._clock = clock
        self._waiting: dict[Link, None] = {}  # the oldest first
        self._rounds = WorkRounds(self._go_through, clock)

    def add(self, link: Link) -> None:
        """Go through a target soon, once for all that has happened by then."""
        self._waiting[link] = None
        self._rounds.ask()

    async def run(self) -> None:
        """Work until cancelled."""
        await self._rounds.run()

    async def _go_through(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for link in waiting:
            async for _ in in_slices(self._steps(link), self._clock):
                pass
