"""Describes spans, and derives whose they are from the pod's UID, which both clusters know. Pure.

A pod's trace is named by the 128 bits of its UID in the source, its root span and the spans of its
candidates by hashes. So the agents of source and target tell the same trace without a word on the
wire, and choose the same pods when not all are traced.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias
from uuid import UUID

Value: TypeAlias = str | int | float | bool | tuple[str, ...]
Attributes: TypeAlias = Mapping[str, Value]

LONGEST: Final = 256
"""Characters of a message that go into a span."""

NOTHING: Final[Attributes] = MappingProxyType({})
_RANDOM: Final = (
    2**56
)  # the last 56 bits of a UID are random ones, as W3C wants them in a trace's name
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """A moment within a span."""

    name: str
    at: float  # Unix seconds
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanLink:
    """Another span, perhaps of another trace, that has led to this one."""

    trace: int
    span: int


@dataclass(frozen=True, slots=True)
class Span:
    """A step of a pod's way that is over."""

    name: str
    trace: int
    id: int
    parent: int
    """0: this is the root."""
    start: float  # Unix seconds
    end: float
    attributes: Attributes = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    error: str = ""
    """Why the step has failed; "" if it has not."""
    is_remote: bool = False
    """Whether the parent is another cluster's."""


def trace_id(uid: str) -> int:
    """Return the name of a pod's trace; 0, which is none, if that is no UID."""
    try:
        return UUID(uid).int
    except ValueError:
        return 0


def root_id(uid: str) -> int:
    """Return the name of the root span of a pod's trace."""
    return span_id(uid, "pod")


def candidate_id(uid: str, chaperon_uid: str) -> int:
    """Return the name of the span of a pod's candidate: the parent of what its target does."""
    return span_id(uid, "candidate", chaperon_uid)


def span_id(*parts: object) -> int:
    """Return a name that the parts give; never 0, which is none."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1


def is_sampled(uid: str, ratio: float) -> bool:
    """Tell whether the pod of that UID is among those that are traced."""
    trace = trace_id(uid)
    return trace != 0 and trace % _RANDOM < ratio * _RANDOM


def child(
    uid: str,
    name: str,
    start: float,
    end: float,
    attributes: Attributes = NOTHING,
    *,
    parent: int = 0,
    events: tuple[SpanEvent, ...] = (),
    error: str = "",
) -> Span:
    """Build a span below another one, by default the root; `start` is never after `end`."""
    above = parent or root_id(uid)
    made = span_id(uid, name, above, start)
    begun = min(start, end)
    return Span(
        name, trace_id(uid), made, above, begun, end, attributes, events, (), error[:LONGEST]
    )


def link_of(traceparent: str) -> tuple[SpanLink, ...]:
    """Return the span that a W3C `traceparent` names; none if it is not one."""
    found = _TRACEPARENT.fullmatch(traceparent)
    trace, span = (int(found[1], 16), int(found[2], 16)) if found else (0, 0)
    return (SpanLink(trace, span),) if trace and span else ()


def link_of_pod(uid: str) -> tuple[SpanLink, ...]:
    """Return the root of another pod's trace; none if that is no UID."""
    trace = trace_id(uid)
    return (SpanLink(trace, root_id(uid)),) if trace else ()
