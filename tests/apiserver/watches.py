"""One watch: the events that a client has yet to read, and how the watch ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

import aiohttp
import msgspec

from tests.apiserver import reading, status
from tests.apiserver.requests import APIRequest
from tests.apiserver.selection import Predicate
from tests.apiserver.store import Change, at_version
from vnode.api.kinds import Kind
from vnode.api.objects import Object

BOOKMARK_INTERVAL: Final = 60.0  # seconds
TIMEOUT: Final = 1800.0  # seconds, of a watch that asks for none
EARLY: Final = 0.001  # seconds: asyncio fires a timer up to the resolution of its clock early


class Watch:
    """The events of one kind that match, in order, as lines of JSON.

    `version` is the server's present one, for bookmarks, which must only be sent when no event
    waits. While `is_silent` nothing is sent, though the connection stays.
    """

    def __init__(
        self, request: APIRequest, kind: Kind, matches: Predicate, version: Callable[[], int]
    ) -> None:
        self.request = request
        self.kind = kind
        self.is_silent = False
        self._matches = matches
        self._version = version
        self._lines: list[bytes] = []
        self._wake = asyncio.Event()  # set when there is something to send, or to look at again
        self._is_ended = False
        self._failure: Exception | None = None

    def push(self, change: Change) -> None:
        """Take a change: an object that stops to match is deleted, to this watch."""
        was = change.old is not None and self._matches(change.old)
        if change.new is not None and self._matches(change.new):
            self._add("MODIFIED" if was else "ADDED", change.new)
        elif was and change.old is not None:
            self._add("DELETED", at_version(change.old, change.version))

    def start(self, obj: Object) -> None:
        """Take an object that exists, of a watch that does not say where it starts."""
        if self._matches(obj):
            self._add("ADDED", obj)

    def expire(self, error: status.StatusError) -> None:
        """End with an ERROR event, as where the version to start from is forgotten."""
        self._add_line("ERROR", error.body())
        self.end()

    def end(self) -> None:
        """End cleanly, after the events that wait."""
        self._is_ended = True
        self._wake.set()

    def cut(self, failure: Exception) -> None:
        """Break the connection; events that wait are lost."""
        self._failure = failure
        self._wake.set()

    def wake(self) -> None:
        """Look again at whether it is silent."""
        self._wake.set()

    async def chunks(
        self, silence: float | None, latency: Callable[[], float]
    ) -> AsyncIterator[bytes]:
        """Give what there is to read, as it comes; SocketTimeoutError after too long a silence."""
        loop = asyncio.get_running_loop()
        over = loop.time() + float(self.request.query.get("timeoutSeconds") or TIMEOUT)
        bookmark = heard = loop.time()
        while True:
            self._wake.clear()
            if lines := self._take():
                if delay := latency():
                    await asyncio.sleep(delay)

                self._check()
                heard = bookmark = loop.time()
                yield b"".join(lines)
                continue

            self._check()
            now = loop.time() + EARLY
            if self._is_ended and not self.is_silent:
                return

            if silence is not None and now >= heard + silence:
                raise aiohttp.SocketTimeoutError("Timeout on reading data from socket")

            if now >= over and not self.is_silent:
                return

            if now >= bookmark + BOOKMARK_INTERVAL and self._bookmarks and not self.is_silent:
                self._bookmark()
                continue

            moments = [over if not self.is_silent else float("inf")]
            moments += [heard + silence] if silence is not None else []
            if self._bookmarks and not self.is_silent:
                moments.append(bookmark + BOOKMARK_INTERVAL)

            await self._wait(min(moments))

    @property
    def _bookmarks(self) -> bool:
        return self.request.query.get("allowWatchBookmarks") == "true"

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _wait(self, moment: float) -> None:
        if moment == float("inf"):
            await self._wake.wait()
            return

        timer = asyncio.get_running_loop().call_at(moment, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _take(self) -> list[bytes]:
        if self.is_silent or self._failure is not None:
            return []

        lines, self._lines = self._lines, []
        return lines

    def _bookmark(self) -> None:
        metadata = {"resourceVersion": str(self._version()), "creationTimestamp": None}
        head = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        self._add_line("BOOKMARK", {**head, "metadata": metadata})

    def _add(self, type_: str, obj: Object) -> None:
        self._add_line(type_, reading.shown(obj, self.request))

    def _add_line(self, type_: str, obj: Object) -> None:
        if self._is_ended:
            return

        self._lines.append(msgspec.json.encode({"type": type_, "object": obj}) + b"\n")
        self._wake.set()
