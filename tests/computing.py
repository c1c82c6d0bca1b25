"""Measures what code computes: its thread's time of the processor, collections of garbage aside.

Such a collection looks through everything that the tests' process holds, whoever's turn it is.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from vnode.api.clock import Clock, SystemClock


@contextmanager
def uncollected() -> Iterator[None]:
    """Have no garbage collected in the block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block computes for longer than that, also if it ends with an error."""
    with uncollected():
        began = time.thread_time()
        try:
            yield
        finally:
            took = time.thread_time() - began
            assert took < seconds


@contextmanager
def steps() -> Iterator[list[float]]:
    """Measure, in the block, the seconds for which each callback of the event loop computes."""
    run, found = asyncio.Handle._run, list[float]()

    def measured(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        run(handle)
        if asyncio.Handle._run is measured:  # or it has left the block, and garbage was collected
            found.append(time.thread_time() - before)

    setattr(asyncio.Handle, "_run", measured)  # noqa: B010 - mypy forbids a plain assignment
    try:
        with uncollected():
            yield found
    finally:
        setattr(asyncio.Handle, "_run", run)  # noqa: B010


@dataclass(frozen=True)
class WorkingClock:
    """A clock on which work takes time, though the event loop's own stands still meanwhile."""

    clock: Clock

    def now(self) -> datetime:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic() + time.thread_time()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)


class BusyClock(SystemClock):
    """A clock by which each look at it takes two milliseconds."""

    moment = 0.0

    def monotonic(self) -> float:
        self.moment += 0.002
        return self.moment
