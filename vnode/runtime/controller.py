"""Runs a reconcile function on the keys of a work queue, the same way for every controller.

Reconciliation is level-triggered: the function gets a key, reads the present state, and corrects
it; it never learns which event woke it. It returns None (done), or the seconds after which to call
it again. An error means back-off: 50 ms doubling to 30 s, or what the server asked for. Controllers
that send requests to targets put the keys of each target into a lane of its own, in which
namespaces take turns (`vnode.runtime.queue`). Each says on whose behalf it works on a key, for the
audit log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from vnode.api.errors import Conflict, TooManyRequests, VnodeError
from vnode.runtime.queue import WorkQueue
from vnode.telemetry import audit, metrics, turn_waits

K = TypeVar("K", bound=Hashable)

_BACKOFF_FIRST: Final = 0.05  # seconds
_BACKOFF_LIMIT: Final = 30.0  # seconds
_WARN_AFTER: Final = 4  # failures in a row; fewer are ordinary (a lost connection)

log = logging.getLogger(__name__)


class Controller(Generic[K]):
    """Reconciles the keys of a queue, each by one task at a time.

    At most `workers` keys of each lane are reconciled at once, and `total` of all lanes. With
    `namespace`, which returns that of a key, namespaces take turns within each lane. `subject`
    returns for whom a key is reconciled (`vnode.telemetry.audit`).
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[float | None]],
        *,
        subject: Callable[[K], audit.Subject],
        workers: int = 8,
        lane: Callable[[K], Hashable] = lambda _key: None,
        total: int | None = None,
        namespace: Callable[[K], str] | None = None,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._subject = subject
        self._queue: WorkQueue[K]
        if namespace is None:
            self._queue = WorkQueue(workers, lane, total)
        else:
            waits, of = turn_waits.of(name), namespace

            def waited(key: K, seconds: float) -> None:
                waits.note(of(key), seconds)

            self._queue = WorkQueue(workers, lane, total, sharer=namespace, waited=waited)

        self._failures: dict[K, int] = {}  # failures in a row; no entry means none
        self._depth = metrics.QUEUE_DEPTH.labels(name)
        self._seconds = metrics.RECONCILE_SECONDS.labels(name)
        self._results = {
            result: metrics.RECONCILES.labels(name, result)
            for result in ("done", "delayed", "error")
        }

    def waiting(self, lane: Hashable, namespace: str) -> int:
        """Count the keys of a namespace that wait in a lane."""
        return self._queue.waiting(lane, namespace)

    def add(self, key: K) -> None:
        """Reconcile the key soon."""
        self._queue.add(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Reconcile the key after that many seconds, or sooner if something else adds it."""
        self._queue.add_after(key, seconds)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    key = await self._queue.get()
                    self._depth.set(len(self._queue))
                    group.create_task(self._work(key), name=f"{self.name} {key}")
        finally:
            self._queue.close()

    async def _work(self, key: K) -> None:
        delay = None
        try:
            with self._seconds.time():
                delay = await self._attempt(key)
        finally:
            self._queue.done(key)

        if delay is not None:
            self._queue.add_after(key, delay)

    async def _attempt(self, key: K) -> float | None:
        try:
            with audit.on_behalf_of(self._subject(key)):
                delay = await self._reconcile(key)
        except VnodeError as error:
            return self._failed(key, error)
        except Exception as error:
            log.exception("%s: reconciling %s failed", self.name, key)
            return self._failed(key, error)

        self._failures.pop(key, None)
        self._results["done" if delay is None else "delayed"].inc()
        return delay

    def _failed(self, key: K, error: Exception) -> float:
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        self._results["error"].inc()
        quiet = count < _WARN_AFTER or isinstance(error, Conflict)
        log.log(logging.DEBUG if quiet else logging.WARNING, "%s: %s: %s", self.name, key, error)
        delay = min(_BACKOFF_FIRST * 2.0 ** min(count, 16), _BACKOFF_LIMIT)
        return max(delay, error.retry_after) if isinstance(error, TooManyRequests) else delay
