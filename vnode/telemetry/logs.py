"""Log lines: JSON for machines, one readable line for people at a terminal.

Fields that apply to everything below a point (the target, the pod) are set once with `context` and
appear in each line that is written inside it, in whichever module.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import msgspec

_fields: ContextVar[dict[str, str] | None] = ContextVar("log_fields", default=None)
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def context(**fields: str) -> Iterator[None]:
    """Add fields to every line that is logged inside."""
    token = _fields.set({**(_fields.get() or {}), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    given = {k: v for k, v in vars(record).items() if k not in _STANDARD}
    return {**(_fields.get() or {}), **given}


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """`time`, `level`, `logger`, `msg`, the fields, and `error` with a trace if there is."""
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)

        return msgspec.json.encode(line, enc_hook=str).decode()


class TextFormatter(logging.Formatter):
    """One line for a person; a trace below it if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, message, then `field=value` pairs."""
        pairs = "".join(f" {k}={v}" for k, v in _extra(record).items())
        text = f"{_time(record)[11:23]} {record.levelname:7} {record.getMessage()}{pairs}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def configure(level: str, style: str, stream: TextIO | None = None) -> None:
    """Send everything to stderr. `style` is json, text, or auto (text on a terminal)."""
    stream = stream or sys.stderr
    if style == "auto":
        style = "text" if stream.isatty() else "json"

    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if style == "text" else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("aiohttp.access").setLevel("WARNING")
    logging.getLogger("aiohttp.server").addFilter(_not_of_a_bad_request)


def _not_of_a_bad_request(record: logging.LogRecord) -> bool:
    """Requests that are no HTTP are answered 400, and no error of ours.

    aiohttp would log a trace of each, with what it did not understand: it may be a token.
    """
    error = record.exc_info[1] if record.exc_info else None
    return type(error).__module__ != "aiohttp.http_exceptions"
