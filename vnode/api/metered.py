"""Measures for how long a task computes: each of its steps, from one wait to the next.

What is measured is all that runs in a step, whoever wrote it: subscribers to an informer, too. Time
in which the task waits, and others have their turn, is not in it; nor is that of tasks it starts.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Metered(Awaitable[T], Generic[T]):
    """Runs a coroutine where it is awaited; `spend` is called with the seconds of each step."""

    def __init__(
        self,
        work: Coroutine[Any, Any, T],
        spend: Callable[[float], None],
        timer: Callable[[], float] = time.thread_time,
    ) -> None:
        """Measure by the processor's time: what takes long on a busy machine is no work."""
        self._work = work
        self._spend = spend
        self._timer = timer

    def __await__(self) -> Generator[Any, Any, T]:
        """Pass on what the coroutine waits for, and what comes of that."""
        step: Callable[[], Any] = partial(self._work.send, None)
        while True:
            begun = self._timer()
            try:
                waits_for = step()
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._spend(self._timer() - begun)

            try:
                step = partial(self._work.send, (yield waits_for))
            except BaseException as error:  # noqa: BLE001 - the coroutine's to catch
                step = partial(self._work.throw, error)
