"""An event loop in simulated time: time passes only when everybody waits, and then at once.

It has no selector and no threads, which makes it cheap to begin with and quick; whoever would wait
for the outside world, or for nothing at all, is `Stalled`. Work takes next to no time, but some, as
on any machine: in a time that stood still, a timer whose seconds are too few for the clock would be
set again for ever. Within `simulated_time` the clock of the machine that vnode reads is that of the
loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from unittest.mock import patch

from vnode.api.clock import SystemClock

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_STEP: Final = 1e-6  # seconds that each pass of the loop takes, as on a quick machine

T = TypeVar("T")


class Stalled(Exception):
    """Nothing is ready and no timer runs: everybody waits for what cannot come."""


class SimulatedLoop(asyncio.base_events.BaseEventLoop):
    """A loop that moves its own clock on to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._moment = 0.0

    def time(self) -> float:
        """Return the simulated time in seconds."""
        return self._moment

    def select(self, timeout: float | None) -> list[Any]:
        """Let that time pass."""
        if timeout is None:
            raise Stalled

        self._moment += max(timeout, _STEP)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def _monotonic(_clock: SystemClock) -> float:
    return asyncio.get_running_loop().time()


def _now(_clock: SystemClock) -> datetime:
    return EPOCH + timedelta(seconds=asyncio.get_running_loop().time())


@contextmanager
def simulated_time() -> Iterator[None]:
    """Have the system's clock show the time of the running loop."""
    with patch.multiple(SystemClock, monotonic=_monotonic, now=_now):
        yield


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in simulated time."""
    with simulated_time(), asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
