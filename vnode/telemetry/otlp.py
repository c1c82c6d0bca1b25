"""Sends spans to a collector by OTLP over HTTP, with OpenTelemetry's library.

The only module that knows it; `tracing` imports this one where a collector is named. What the
library logs of each failed attempt is left out: `span_sender` says once what is wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from vnode import __version__
from vnode.telemetry.span_sender import Export
from vnode.telemetry.spans import Attributes, Span

TIMEOUT: Final = 10.0
"""Seconds that a collector has for an answer."""

_NANOSECONDS: Final = 1_000_000_000
_SCOPE: Final = InstrumentationScope("vnode", __version__)


class _LastError(logging.Handler):
    """Keeps what the library would have logged last."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a record, of a bounded length."""
        self.text = record.getMessage()[:256]


def exporter(url: str, headers: dict[str, str], ca_file: str = "") -> Export:
    """Return what sends spans to that address."""
    said = _LastError()
    library = logging.getLogger("opentelemetry")
    library.handlers, library.propagate = [said], False
    sender = OTLPSpanExporter(
        endpoint=url,
        headers=headers,
        certificate_file=ca_file or None,
        timeout=TIMEOUT,
        compression=Compression.Gzip,
    )

    def export(resource: Attributes, batch: Sequence[Span]) -> str:
        said.text = ""
        described = Resource(dict(resource))
        if sender.export([readable(span, described) for span in batch]) is SpanExportResult.SUCCESS:
            return ""

        return said.text or "it gave no reason"

    return export


def readable(span: Span, resource: Resource) -> ReadableSpan:
    """Build the library's form of a span."""
    return ReadableSpan(
        span.name,
        _context(span.trace, span.id),
        _context(span.trace, span.parent, is_remote=span.is_remote) if span.parent else None,
        resource,
        dict(span.attributes),
        [Event(each.name, dict(each.attributes), _nanoseconds(each.at)) for each in span.events],
        [Link(_context(each.trace, each.span, is_remote=True)) for each in span.links],
        SpanKind.SERVER if span.is_remote else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
        start_time=_nanoseconds(span.start),
        end_time=_nanoseconds(span.end),
        instrumentation_scope=_SCOPE,
    )


def _context(trace: int, span: int, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(trace, span, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * _NANOSECONDS)
