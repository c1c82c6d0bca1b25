"""Keeps the specifications of originals small, most of which follow to no target.

Two bytes of JSON can take seventy in memory, and nothing else bounds what a namespace has of them.
So one of more than a few values is kept as JSON, with as much of it as is asked for at each event,
and is decoded where a copy is made. One that is too large to follow is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from vnode.api import constraint_size, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object

PARTS: Final = 10_000
"""Fields and entries of a specification that follows: 3,000 blocks of addresses, say."""
_FEW: Final = 200
_PACKED: Final = "packed"
_TOO_LARGE: Final = b""
_MESSAGE: Final = (
    f"spec has over {PARTS} fields and entries, {PARTS} follow at most: divide it into several "
    "objects"
)


def pack(obj: Object, short: Callable[[Object], Object]) -> Object:
    """Return what is kept of an object's specification, as fields; `short` makes it short."""
    spec = objects.spec(obj)
    if constraint_size.has_at_most(_FEW, spec):
        return {"spec": spec}

    packed = _TOO_LARGE if _problem(spec) else msgspec.json.encode(spec)
    return {"spec": short(spec), _PACKED: packed}


def is_packed(obj: Object) -> bool:
    """Tell whether an object has less than its whole specification."""
    return _PACKED in obj


def problem(obj: Object) -> str:
    """Return why a packed object does not follow; "" if it may."""
    if not is_packed(obj):
        return _problem(objects.spec(obj))

    return "" if obj[_PACKED] else _MESSAGE


def unpack(obj: Object) -> Object:
    """Return an object with its whole specification; ConfigError if it is too large."""
    if found := problem(obj):
        raise ConfigError(found)

    if not is_packed(obj):
        return obj

    whole = {**obj, "spec": msgspec.json.decode(obj[_PACKED])}
    del whole[_PACKED]
    return whole


def _problem(spec: Object) -> str:
    return "" if constraint_size.has_at_most(PARTS, spec) else _MESSAGE
