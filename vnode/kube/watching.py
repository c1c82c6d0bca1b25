"""Reads one watch connection: its events, and how it ended.

The informer reacts differently to each end: after a clean end it resumes at once from the last
version (a busy API server ends watches early and cleanly), an expired version needs a new list, and
without an answer it backs off.

Silence is a clean end. Most API servers send a bookmark a minute, so a silent watch may be one that
a load balancer has lost; but a server without bookmarks is no less healthy, and resuming costs it
one request. A client that moves to another address ends its watches, cleanly as well.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Final

import aiohttp
import msgspec

from vnode.api import documents, errors
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import answer_heads, answer_limits, decoding
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.kube.transport import JSON, METADATA

TIMEOUT: Final = 150  # seconds after which the server is asked to end a watch
SILENCE: Final = 80  # seconds without a byte after which a watch is resumed

_PLENTY: Final = 20  # as many such events are within the bound of one, counted roughly
_EMPTY: Final = 100  # empty lines that are taken at once: each costs as much as an event

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
TOO_LARGE: Final = "TOO_LARGE"
"""Not of Kubernetes: an object that is there, of which only metadata can be read."""


class Event(msgspec.Struct, gc=False):
    """Holds one line of a watch: `type` is a constant above, or ERROR with a metav1.Status.

    `size` is the length of the line in bytes, `values` the number of JSON values in it.
    """

    type: str
    object: Object
    size: int = 0
    values: int = 0


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Bookmark(msgspec.Struct):
    """Checks the object of a bookmark, which no informer's `accept` sees."""

    metadata: _BookmarkMetadata


class _HeadMetadata(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _ObjectHead(msgspec.Struct):
    metadata: _HeadMetadata


class _EventHead(msgspec.Struct):
    """Reads the head of an event, and skips all else, which costs no memory."""

    type: str
    object: _ObjectHead


_decoder: Final = msgspec.json.Decoder(Event)
_head_decoder: Final = msgspec.json.Decoder(_EventHead)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Selects what to watch: a kind, in one namespace or all, by selectors, maybe metadata only."""

    kind: Kind
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    def query(self) -> dict[str, str]:
        """Return the selectors as query parameters."""
        pairs = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {k: v for k, v in pairs.items() if v}


async def stream(
    client: Client, selection: ListOptions, version: str
) -> AsyncGenerator[list[Event]]:
    """Yield events after `version`, in batches as they arrive, until the server ends the watch.

    The first batch is empty: the server has accepted the watch, and may have no event yet. Raises
    Gone if the version is too old, another ApiError if the server refuses, Unreachable if the
    connection breaks or carries something else than events. Of an object that is too large there is
    an event of the type TOO_LARGE.
    """
    query = {
        **selection.query(),
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(TIMEOUT),
    }
    path = selection.kind.path(selection.namespace)
    bound = answer_limits.of_object(selection.kind)
    accept = METADATA if selection.metadata_only else JSON
    async with client.stream("GET", path, query=query, silence=SILENCE, accept=accept) as response:
        yield []
        try:
            async for lines in _lines(response, bound.size):
                yield [await _event(line, bound) for line in lines]
        except aiohttp.SocketTimeoutError:
            log.debug("%s: a watch of %s is silent", client.name, selection.kind.plural)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if client.has_left(response):
                return

            raise errors.Unreachable(f"{client.name}: watch broke: {error}") from error


async def _lines(response: aiohttp.ClientResponse, limit: int) -> AsyncIterator[list[bytes]]:
    """Yield whole lines; aiohttp's own reader refuses those over 128 KiB.

    The beginning of a line is kept in parts: joined for each chunk, a line that comes byte by byte
    would be copied as often.
    """
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        answer_heads.refuse_framing(response)
        end, *lines = chunk.split(b"\n")
        parts.append(end)
        size += len(end)
        if lines:
            *lines, rest = b"".join(parts), *lines
            if lines.count(b"") > _EMPTY:
                raise errors.Unreachable("a watch sent empty lines")

            yield [line for line in lines if line]
            parts, size = [rest], len(rest)

        if size > limit:
            raise errors.Gone(410, "Expired", f"a watch sent a line of more than {limit} bytes")


async def _event(line: bytes, bound: AnswerLimit) -> Event:
    values = decoding.most_values(line)
    if values is None or values > bound.values // _PLENTY:
        try:
            values = await decoding.measure(line, bound.values)
        except errors.TooLarge as error:
            return _too_large(line, str(error))

    try:
        event = _decoder.decode(line)
        if event.type == BOOKMARK:
            msgspec.convert(event.object, _Bookmark)
    except documents.NO_JSON as error:  # a wrong type included
        raise errors.Unreachable(f"a watch sent a line that is no event: {error}") from error

    if event.type == "ERROR":
        status, code = event.object, event.object.get("code")
        raise errors.from_status(
            code if isinstance(code, int) else 500,
            str(status.get("reason", "")),
            str(status.get("message", "")),
        )

    event.size = len(line)
    event.values = values
    return event


def _too_large(line: bytes, why: str) -> Event:
    """Return an event about an object that is too large; Gone, for a list, if it has no head."""
    try:
        head = _head_decoder.decode(line)
    except documents.NO_JSON as error:  # nested far too deep, for one
        raise errors.Gone(410, "Expired", f"a watch sent what cannot be read: {why}") from error

    kind = DELETED if head.type == DELETED else TOO_LARGE
    return Event(kind, msgspec.to_builtins(head.object), len(line), 0)
