"""Decodes JSON of servers that need not be honest: measured first, and a large one in pieces.

To measure means to reduce JSON to its outline, the commas and brackets outside of strings: how many
values there are, and how deep they are nested, follows from that. Nothing is decoded before.

msgspec holds the interpreter's lock, so in a thread it would block the event loop all the same. So
a large answer is worked on in steps of a few ten milliseconds at most, between which the event loop
runs: slices of the text, then objects of the list.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from vnode.api import documents, errors
from vnode.api.objects import Object, Objects
from vnode.kube import answer_limits
from vnode.kube.answer_limits import AnswerLimit

DEPTH: Final = 100
"""Levels of nesting: objects have some 12, schemas of CRDs some 50. What walks objects recursively
(copies, comparisons) takes two or three of the interpreter's 1,000 frames for a level."""

PIECE: Final = 512 * 1024
"""Bytes of a large answer that are worked on at once: some milliseconds."""

_BRACES: Final = bytes.maketrans(b"{}", b"[]")
_OTHERS: Final = bytes(set(range(256)) - set(b'[]{},"'))
_STRING: Final = re.compile(rb'"[^"]*+"?')  # of an outline: there are no escapes any more
_AT_ONCE: Final = 50_000  # strings of an outline
_STRINGS: Final = re.compile(rb'[^"]*+(?:"[^"]*+"[^"]*+){0,%d}+' % _AT_ONCE)
_LEAST: Final = 2  # bytes of a value, with its comma
_ITEM: Final = PIECE // 200
"""Bytes that cost as much time as it takes to judge and to trim an object, which may be small."""

Kept: TypeAlias = Callable[[Any], Object | None]
"""Tells what is kept of an item of a list, None for nothing. It is asked as soon as the item is
decoded: whole lists would take several times the memory of what is kept of them."""


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(name="continue", default=None)


class _List(msgspec.Struct):
    kind: str
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None  # Go writes a list that was never filled as null


class Page(msgspec.Struct):
    """Holds what is kept of a page of a list; `token` asks for the next one, and is "" on the last.

    `values` is the number of JSON values in the whole page.
    """

    items: Objects
    version: str
    token: str
    values: int


_any: Final = msgspec.json.Decoder()
_list: Final = msgspec.json.Decoder(_List)


def whole(item: Any) -> Any:
    """Keep an item as it is."""
    return item


async def decode(payload: bytes, bound: AnswerLimit) -> Any:
    """Decode JSON, None for an empty payload; Unreachable if it is not JSON, or out of bounds."""
    if not _is_small(payload, bound.values):
        await measure(payload, bound.values)

    return _decode(payload)


def decode_at_once(payload: bytes, bound: AnswerLimit) -> Any:
    """Decode JSON as `decode` does, without a pause: for answers of a MiB at most."""
    if not _is_small(payload, bound.values):
        for _pause in _measure(payload, bound.values):
            pass

    return _decode(payload)


def _is_small(payload: bytes, limit: int) -> bool:
    """Tell whether JSON is within the bounds whatever it says, which saves measuring most answers.

    A value takes a byte at least.
    """
    return len(payload) <= limit and _is_flat(payload)


def most_values(payload: bytes) -> int | None:
    """Return a number that JSON has no more values than; None if it may be nested too deep.

    It takes a tenth of the time of `measure`, and counts what is in strings, too.
    """
    if not _is_flat(payload):
        return None

    return 1 + payload.count(b",") + payload.count(b"{") + payload.count(b"[")


def _is_flat(payload: bytes) -> bool:
    """Tell whether no value can be nested too deep.

    In the first half of a text none is deeper than brackets were opened in it, and in the second
    half none deeper than brackets are closed in it.
    """
    half = len(payload) // 2
    opened = payload.count(b"{", 0, half) + payload.count(b"[", 0, half)
    return opened <= DEPTH and payload.count(b"}", half) + payload.count(b"]", half) <= DEPTH


def _decode(payload: bytes) -> Any:
    if not payload:
        return None

    try:
        return _any.decode(payload)
    except documents.NO_JSON as error:
        raise errors.Unreachable(f"the answer is not JSON: {error}") from error


async def decode_page(payload: bytes, bound: AnswerLimit, kept: Kept = whole) -> Page | None:
    """Decode a page of a list; None if it is none. Raises as `decode` does, and what `kept` raises.

    An API server names the kind of its answer, and a list that lacks items is no empty one.
    """
    values = await measure(payload, bound.values)
    try:
        found = _list.decode(payload)
        if not found.kind.endswith("List"):
            return None

        items = await _decode_items(found.items or [], kept)
    except msgspec.ValidationError:
        return None
    except documents.NO_JSON as error:
        raise errors.Unreachable(f"the answer is not JSON: {error}") from error

    metadata = found.metadata
    return Page(items, metadata.resource_version or "", metadata.continue_ or "", values)


async def _decode_items(raw: list[msgspec.Raw], kept: Kept) -> Objects:
    items: Objects = []
    size = 0
    for item in raw:
        size += _ITEM + len(memoryview(item))
        if size > PIECE:
            await asyncio.sleep(0)
            size = 0

        await _check_object(item)
        if (obj := kept(_any.decode(item))) is not None:
            items.append(obj)

    return items


async def _check_object(item: msgspec.Raw) -> None:
    """Raise TooLarge for an object of a page that is too large by itself: it is decoded at once."""
    most = answer_limits.OBJECT.values
    if len(memoryview(item)) > _LEAST * most:
        await measure(bytes(item), most)


async def measure(payload: bytes, limit: int) -> int:
    """Return how many values JSON has.

    Raises TooLarge if they are more than `limit`, or nested more than DEPTH levels deep. Of what is
    no JSON it may return anything.
    """
    steps = _measure(payload, limit)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return int(end.value)

        await asyncio.sleep(0)


def _measure(payload: bytes, limit: int) -> Generator[None, None, int]:
    """Measure as `measure` promises; yields where it may pause."""
    outline = yield from _outline(payload)
    if b'"' in outline:
        outline = yield from _without_strings(outline, limit)

    brackets = outline.translate(None, b",")
    closing = brackets.count(b"]")
    values = 1 + len(outline) - closing
    if values > limit:
        raise _too_many(limit)

    if len(brackets) - closing > DEPTH:  # fewer cannot be nested deeper
        yield from _check_depth(brackets)

    return values


def _too_many(limit: int) -> errors.TooLarge:
    return errors.TooLarge(f"the answer has more than {limit} values")


def _outline(payload: bytes) -> Generator[None, None, bytes]:
    """Return the brackets and commas of JSON, all brackets as square ones, and strings with such.

    Without escapes, quotes are what begins or ends a string. Two that are neighbours once all else
    is gone are an empty string, or the end of one and the beginning of the next: without them, what
    is in a string stays in one, and what is outside stays outside.
    """
    if len(payload) <= PIECE:
        return _reduce(payload)

    parts = []
    for piece in _pieces(payload):
        parts.append(_reduce(piece))
        yield

    return b"".join(parts).replace(b'""', b"")


def _reduce(text: bytes) -> bytes:
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")

    outline = text.translate(_BRACES, _OTHERS)
    bare = outline.translate(None, b'"')
    if 2 * outline.count(b'""') == len(outline) - len(bare):  # the usual case, and much faster
        return bare

    return outline.replace(b'""', b"")


def _pieces(payload: bytes) -> Iterator[bytes]:
    """Yield slices of a text, none of which ends within an escape."""
    start = 0
    while start < len(payload):
        end = start + PIECE
        piece = payload[start:end]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            end += 1
            piece = payload[start:end]

        yield piece
        start = end


def _without_strings(outline: bytes, limit: int) -> Generator[None, None, bytes]:
    """Take the strings out of an outline; TooLarge if there are more than values may be.

    Between two strings of an outline there is a bracket or a comma, hence a value.
    """
    parts = []
    start = count = 0
    while start < len(outline):
        if count > limit:
            raise _too_many(limit)

        found = _STRINGS.match(outline, start)
        piece = (found and found[0]) or outline[start:]  # a string without an end
        parts.append(_STRING.sub(b"", piece))
        start += len(piece)
        count += _AT_ONCE
        if start < len(outline):
            yield

    return b"".join(parts)


def _check_depth(brackets: bytes) -> Generator[None, None, None]:
    """Raise TooLarge for brackets that are nested too deep; each round takes the innermost."""
    work = 0
    for _ in range(DEPTH):
        rest = brackets.replace(b"[]", b"")
        if len(rest) == len(brackets):  # none are left, or they match nowhere: then it is no JSON
            return

        work += len(brackets)
        brackets = rest
        if work > PIECE:
            yield
            work = 0

    if brackets:
        raise errors.TooLarge(f"the answer is nested more than {DEPTH} levels deep")
