"""Runs tasks that live as long as their object: a link, a Secret, a virtual node.

The author of that object, or the server behind that link, may be wrong or dishonest, and no check
foresees everything. So no failure of such a task ends another one: it is logged and reported, and
the task is started again after a pause. Tasks that the process needs are a Supervisor's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, Generic, TypeVar

from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import VnodeError

K = TypeVar("K", bound=Hashable)

Run = Callable[[], Coroutine[Any, Any, None]]
Report = Callable[[K, str, Exception | None], None]

_BACKOFF_FIRST: Final = 1.0  # seconds
_BACKOFF_LIMIT: Final = 30.0  # seconds
_SETTLED: Final = 60.0  # seconds after which a restarted task counts as working

log = logging.getLogger(__name__)


class KeyedTasks(Generic[K]):
    """Starts tasks in a TaskGroup, by key; made by `Supervisor.keyed`.

    `report` is called with key, name and error of a task that failed, and with None in place of the
    error when it works again or has ended.
    """

    def __init__(
        self, group: asyncio.TaskGroup, report: Report[K] | None, clock: Clock | None
    ) -> None:
        self._group = group
        self._report = report
        self._clock: Clock = clock or SystemClock()
        self._tasks: dict[K, set[asyncio.Task[None]]] = {}  # not ended; no empty sets
        self._closed = False  # for good; from then on nothing is started

    def start(self, key: K, run: Run, name: str) -> None:
        """Run `run()`, and again after a pause whenever it fails; it may return.

        Nothing is started once these tasks are closed: whose parts end together, in whatever order,
        need not unsubscribe first from what tells them to start one.
        """
        if self._closed:
            return

        task = self._group.create_task(self._guard(key, run, name), name=name)
        self._tasks.setdefault(key, set()).add(task)
        task.add_done_callback(lambda task: self._ended(key, task))

    def is_active(self, key: K) -> bool:
        """Tell whether a task of that key runs or waits for a restart, and is not cancelled."""
        tasks = self._tasks.get(key, ())
        return any(not task.done() and not task.cancelling() for task in tasks)

    def stop(self, key: K) -> None:
        """Cancel all tasks of that key."""
        for task in self._tasks.get(key, ()):
            task.cancel()

    async def end(self, key: K) -> None:
        """Cancel all tasks of that key, and return once they have ended."""
        self.stop(key)
        if tasks := self._tasks.get(key):
            await asyncio.wait(tasks)

    def close(self) -> None:
        """Cancel all tasks, and start no other."""
        self._closed = True
        for key in self._tasks:
            self.stop(key)

    def _ended(self, key: K, task: asyncio.Task[None]) -> None:
        tasks = self._tasks[key]
        tasks.discard(task)
        if not tasks:
            del self._tasks[key]

        self._call_report(key, task.get_name(), None)

    async def _guard(self, key: K, run: Run, name: str) -> None:
        delay, failed = _BACKOFF_FIRST, False
        while True:
            started = self._clock.monotonic()
            settled = self._settle_later(key, name) if failed else None
            try:
                await run()
            except Exception as error:
                log.exception("%s failed, and is started again", name)
                failed = True
                if self._clock.monotonic() - started >= _SETTLED:
                    delay = _BACKOFF_FIRST

                self._call_report(key, name, error)
            else:
                return
            finally:
                if settled is not None:
                    settled.cancel()

            await self._clock.sleep(delay)
            delay = min(delay * 2, _BACKOFF_LIMIT)

    def _settle_later(self, key: K, name: str) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_later(_SETTLED, self._call_report, key, name, None)

    def _call_report(self, key: K, name: str, error: Exception | None) -> None:
        try:
            if self._report is not None:
                self._report(key, name, error)
        except Exception:
            log.exception("the failure of %s could not be reported", name)


def explain(error: BaseException) -> str:
    """Return why a task failed; only our own errors are known to contain no credentials."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]

    if isinstance(error, VnodeError):
        return str(error)

    return f"unexpected {type(error).__name__}: see the agent's log"
