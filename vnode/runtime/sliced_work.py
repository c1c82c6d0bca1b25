"""Goes through all that has to be looked at again when something of many parts changes, in slices.

A target may have thousands of pods and copies, and may say that it is well as often as it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from vnode.api.clock import Clock
from vnode.api.slices import in_slices

K = TypeVar("K", bound=Hashable)


class SlicedWork(Generic[K]):
    """Goes through the `steps` of each key that is added, one key after the other."""

    def __init__(self, steps: Callable[[K], Iterable[None]], clock: Clock) -> None:
        self._steps = steps
        self._clock = clock
        self._waiting: dict[K, None] = {}  # the oldest first
        self._woken = asyncio.Event()

    def add(self, key: K) -> None:
        """Go through a key's steps soon, once for all that has happened by then."""
        self._waiting[key] = None
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._waiting:
                key = next(iter(self._waiting))
                del self._waiting[key]
                async for _ in in_slices(self._steps(key), self._clock):
                    pass
