"""An event loop in simulated time: time passes only when everybody waits, and then at once.

It has no selector and no threads, which makes it cheap to begin with and quick; whoever would wait
for the outside world, or for nothing at all, is `Stalled`. Work takes next to no time, but some, as
on any machine: in a time that stood still, a timer whose seconds are too few for the clock would be
set again for ever. Within `simulated_time` the clock of the machine that vnode reads is that of the
loop.

Timers and callbacks are written anew here, without what only other threads and asyncio's debug mode
need: a sixth of the time of a schedule was spent on them.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, TypeVarTuple
from unittest.mock import patch

from vnode.api.clock import SystemClock

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_STEP: Final = 1e-6  # seconds that each pass of the loop takes, as on a quick machine

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Stalled(Exception):
    """Nothing is ready and no timer runs: everybody waits for what cannot come."""


class SimulatedCall(asyncio.TimerHandle):
    """A callback that is to be called, soon or at a time; made without `TimerHandle.__init__`."""

    __slots__ = ()

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
        when: float,
    ) -> None:
        self._callback: Callable[..., object] | None = callback
        self._args: tuple[Any, ...] = args
        self._context = contextvars.copy_context() if context is None else context
        self._cancelled = False
        self._when = when

    def cancel(self) -> None:
        """Do not call it."""
        self._cancelled = True
        self._callback, self._args = None, ()


class SimulatedLoop(asyncio.base_events.BaseEventLoop):
    """A loop that moves its own clock on to the next timer."""

    _stopping: bool  # the base class's: `stop` was called

    def __init__(self) -> None:
        super().__init__()
        self._moment = 0.0
        self._soon: deque[SimulatedCall] = deque()
        self._timers: list[tuple[float, int, SimulatedCall]] = []
        self._numbers = itertools.count()  # of two timers of one time, the one set first is first

    def time(self) -> float:
        """Return the simulated time in seconds."""
        return self._moment

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        """Call it in the next pass."""
        call = SimulatedCall(callback, args, context, 0.0)
        self._soon.append(call)
        return call

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call it after that many seconds."""
        return self.call_at(self._moment + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call it at a simulated time."""
        call = SimulatedCall(callback, args, context, when)
        heapq.heappush(self._timers, (when, next(self._numbers), call))
        return call

    def _run_once(self) -> None:
        """Let time pass until somebody is ready, and call those who are ready by then."""
        soon, timers = self._soon, self._timers
        self._moment += _STEP
        if not soon:
            self._pass_time()

        now = self._moment
        while timers and timers[0][0] <= now:
            soon.append(heapq.heappop(timers)[2])

        for _ in range(len(soon)):
            call = soon.popleft()
            callback, args = call._callback, call._args
            if callback is None:
                continue

            try:
                call._context.run(callback, *args)
            except Exception as error:  # noqa: BLE001 - as asyncio's own loops do
                message = f"Exception in callback {callback}"
                self.call_exception_handler({"message": message, "exception": error})

    def _pass_time(self) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)

        if timers:
            self._moment = max(self._moment, timers[0][0])
        elif not self._stopping:
            raise Stalled

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
