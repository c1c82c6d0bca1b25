"""Writes the audit log in a thread: who reads it slowly holds up no pod.

Lines wait in memory, a bounded number of them. Whatever more there is while nobody reads is lost,
and the log says how many lines that were. They are written some at a time: to wake the thread for
each would cost the event loop the interpreter's lock as often, a twentieth of its time in a burst.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from queue import SimpleQueue
from typing import Any, Final

from vnode.api.errors import ConfigError
from vnode.telemetry.audit import NAME, OFF
from vnode.telemetry.logs import JsonFormatter

STDERR: Final = "stderr"
"""With all other lines, in their format."""
NOWHERE: Final = "off"
GATHER: Final = 0.1
"""Seconds by which a line may be late; who kills the agent loses those of that time."""
_MOST_WAITING: Final = 20_000  # lines; about 20 MB


class AuditQueue(QueueHandler):
    """Takes lines, and never waits."""

    def __init__(self, waiting: SimpleQueue[Any], most: int = _MOST_WAITING) -> None:
        super().__init__(waiting)
        self._waiting = waiting
        self._most = most
        self._lost = 0

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record as it is: nothing in it changes, and the thread formats it."""
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        """Have the record written, unless too many wait; once there is room, say how many did."""
        if self._waiting.qsize() >= self._most:
            self._lost += 1
            return

        if self._lost:
            text, self._lost = f"{self._lost} lines are lost: nobody read this log", 0
            self._waiting.put(logging.LogRecord(NAME, logging.WARNING, "", 0, text, None, None))

        self._waiting.put(record)


class GatheringListener(QueueListener):
    """Writes the lines that have come within a moment together."""

    def __init__(self, waiting: SimpleQueue[Any], *handlers: logging.Handler) -> None:
        super().__init__(waiting, *handlers)
        self._waiting = waiting

    def dequeue(self, block: bool) -> logging.LogRecord:
        """Return the next line; where none waits, let some gather behind the first that comes."""
        had_none = self._waiting.empty()
        record = super().dequeue(block)
        if had_none:
            time.sleep(GATHER)

        return record


@contextmanager
def written_to(destination: str) -> Iterator[None]:
    """Write the audit log to `stderr`, to the file of that path, or nowhere (`off`)."""
    if destination == NOWHERE:
        yield
        return

    log, waiting = logging.getLogger(NAME), SimpleQueue[Any]()
    handlers = _handlers(destination)
    handler, listener = AuditQueue(waiting), GatheringListener(waiting, *handlers)
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(logging.INFO)
    listener.start()
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = True
        log.setLevel(OFF)
        listener.stop()
        if destination != STDERR:
            handlers[0].close()


def _handlers(destination: str) -> list[logging.Handler]:
    if destination == STDERR:
        return logging.getLogger().handlers

    try:
        handler = WatchedFileHandler(destination, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"auditLog: cannot write {destination}: {error.strerror}; name a file in a volume of "
            f"the agent, or {STDERR}, or {NOWHERE}"
        ) from error

    handler.setFormatter(JsonFormatter())
    return [handler]
