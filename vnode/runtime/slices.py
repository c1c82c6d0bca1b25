"""Divides long work into slices, between which everything else in the event loop has its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

from vnode.api.clock import Clock

_SLICE: Final = 0.005  # seconds
T = TypeVar("T")


async def in_slices(items: Iterable[T], clock: Clock) -> AsyncIterator[T]:
    """Yield all items; what takes longer than a few milliseconds gives way to others in between."""
    begun = clock.monotonic()
    for item in items:
        yield item
        if clock.monotonic() - begun >= _SLICE:
            await asyncio.sleep(0)
            begun = clock.monotonic()
