"""Formats log lines: JSON for machines, one readable line for people at a terminal.

Fields that apply to a whole task (the target, the pod) are set once with `context` and appear in
each line that is logged inside it, in any module.
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

from vnode.api import visible

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
    fields = {k: v for k, v in vars(record).items() if k not in _STANDARD}
    return {**(_fields.get() or {}), **fields}


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write `time`, `level`, `logger`, `msg`, the fields, and a traceback as `error`."""
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)

        return visible.escaped(msgspec.json.encode(line, enc_hook=str).decode())


class TextFormatter(logging.Formatter):
    """Formats a record as one line for people, with a traceback below it if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, message, then `field=value` pairs."""
        pairs = "".join(f" {k}={v}" for k, v in _extra(record).items())
        message = visible.line(f"{record.getMessage()}{pairs}")
        text = f"{_time(record)[11:23]} {record.levelname:7} {message}"
        if not record.exc_info:
            return text

        return f"{text}\n{visible.text(self.formatException(record.exc_info))}"


def configure(level: str, style: str, stream: TextIO | None = None) -> None:
    """Log everything to stderr. `style` is json, text, or auto (text on a terminal)."""
    stream = stream or sys.stderr
    if style == "auto":
        style = "text" if stream.isatty() else "json"

    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if style == "text" else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("aiohttp.access").setLevel("WARNING")
    logging.getLogger("aiohttp.server").addFilter(_is_no_bad_request)


def _is_no_bad_request(record: logging.LogRecord) -> bool:
    """Drop records of requests that are not HTTP; they are answered 400.

    aiohttp would log a traceback for each, with the unparsed text, which may be a token.
    """
    error = record.exc_info[1] if record.exc_info else None
    return type(error).__module__ != "aiohttp.http_exceptions"
