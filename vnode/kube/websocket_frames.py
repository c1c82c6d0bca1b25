"""Bounds how many frames come on a WebSocket, before anything is made of them.

A frame of two bytes costs as much as one of a kilobyte, and those that carry nothing reach nobody
who could count them: aiohttp answers a ping and drops a pong without a pause, and adds an empty
fragment to the message in its parser. 3.5 MB of pongs kept an agent's event loop for two seconds.
So frames are counted in the bytes that arrive, on both sides of a WebSocket, and one that has too
many is broken off.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from vnode.api.token_bucket import TokenBucket

log = logging.getLogger(__name__)

_SHORT: Final = 126  # bytes from which on a fragment is no flood, but somebody's buffer
_LEAST: Final = 2  # bytes of a message that says something: one of exec begins with its channel
_LONGEST_HEAD: Final = 14  # bytes
_UNIT: Final = 4096  # bytes of a message that cost as much as a frame


@dataclass(frozen=True, slots=True)
class FrameLimit:
    """How many frames may come: `at_once`, and then `per_second`.

    Frames that carry next to nothing count: pings, pongs, short fragments and empty messages. With
    `counts_messages` all others do, too, large ones several times.
    """

    per_second: float
    at_once: float
    counts_messages: bool = False

    def bucket(self) -> TokenBucket:
        """Return what may come, for one WebSocket, or for all of somebody's."""
        return TokenBucket(self.per_second, self.at_once)


EMPTY_FRAMES: Final = FrameLimit(per_second=10, at_once=100)
"""For streams of bytes: a ping a second is much, and `exec` opens with an empty message each for a
few channels."""


class FrameCounter:
    """Finds the heads of frames in the bytes of one side, however these are cut."""

    def __init__(self, limit: FrameLimit) -> None:
        self._counts_messages = limit.counts_messages
        self._head = b""  # of a frame, as far as it has come
        self._left = 0  # bytes of the last frame that are yet to come

    def cost(self, data: bytes, most: float) -> float:
        """Return what the frames cost that begin in these bytes; it stops counting at `most`."""
        cost, position = 0.0, self._left
        if self._head:
            data, self._head = self._head + data, b""

        while position < len(data) and cost <= most:
            head = data[position : position + _LONGEST_HEAD]
            found = _sizes(head)
            if found is None:
                self._head, self._left = head, 0
                return cost

            start, length = found
            position += start + length
            if self._counts_messages:
                cost += 1 + length // _UNIT
            elif _is_empty(head[0], length):
                cost += 1

        self._left = position - len(data)
        return cost


def _sizes(head: bytes) -> tuple[int, int] | None:
    """Return the bytes of a frame's head and of what it carries; None if more of it has to come."""
    if len(head) < 2:
        return None

    length = head[1] & 0x7F
    extra = {126: 2, 127: 8}.get(length, 0)
    size = 2 + extra + (4 if head[1] & 0x80 else 0)
    if len(head) < size:
        return None

    return size, int.from_bytes(head[2 : 2 + extra], "big") if extra else length


def _is_empty(first: int, length: int) -> bool:
    is_final, code = bool(first & 0x80), first & 0x0F
    if code >= 8:  # a ping, a pong, or the end
        return True

    return length < (_LEAST if is_final and code else _SHORT)


class CountedFrames:
    """Passes bytes to a parser of frames; too many frames break the connection off.

    `now` is the monotonic time. It has the methods that aiohttp calls of its own parser.
    """

    def __init__(
        self,
        parser: Any,
        limit: FrameLimit,
        bucket: TokenBucket,
        now: Callable[[], float],
        abort: Callable[[], None],
    ) -> None:
        self._parser = parser
        self._counter = FrameCounter(limit)
        self._most = limit.at_once
        self._bucket = bucket
        self._now = now
        self._abort = abort
        self._has_ended = False

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Parse what has come; tell whether that was the last."""
        if self._has_ended:
            return True, b""

        cost = self._counter.cost(data, self._most)
        if cost and self._bucket.reserve(self._now(), cost) > 0:
            log.info("a WebSocket sent more frames than it may, and was broken off")
            self._has_ended = True
            self._parser.feed_eof()  # aiohttp forgets a parser that has ended
            self._abort()
            return True, b""

        found: tuple[bool, bytes] = self._parser.feed_data(data)
        return found

    def feed_eof(self) -> None:
        """Note that nothing more comes."""
        self._parser.feed_eof()
