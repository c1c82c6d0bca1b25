"""Carries the messages of a stream between the agents of a source and a target.

What is to be said waits in an outbox while a message is under way, so that a burst of pods needs
few of them. Both sides listen in one task, and send in another one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

import aiohttp
from aiohttp import web

from vnode.pods.stream_messages import MOST, CandidateName, StreamEnded


class Channel(Protocol):
    """Carries the messages of a stream, whole and in order."""

    async def send(self, text: str) -> None:
        """Send a message; StreamEnded if that is impossible."""

    async def receive(self) -> str:
        """Return the next message; StreamEnded if there is none any more."""


class WebSocketChannel:
    """Carries messages on a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse | aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, text: str) -> None:
        """Send a message."""
        try:
            await self._socket.send_str(text)
        except (ConnectionError, aiohttp.ClientError) as error:
            raise StreamEnded("the connection is gone") from error

    async def receive(self) -> str:
        """Return the next message."""
        message = await self._socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise StreamEnded("the other side has ended it")

        return str(message.data)


class Outbox:
    """Gathers what is to be said of candidates while a message is under way.

    What is said of a candidate last is what counts.
    """

    def __init__(self) -> None:
        self._waiting: dict[CandidateName, str] = {}  # in which list of a message
        self._filled = asyncio.Event()  # set while something waits

    def put(self, name: CandidateName, what: str) -> None:
        """Have something said of a candidate, in the list of a message that is called so."""
        self._waiting.pop(name, None)
        self._waiting[name] = what
        self._filled.set()

    async def take(self) -> dict[str, tuple[CandidateName, ...]]:
        """Wait for something to say; return the lists of one message."""
        await self._filled.wait()
        lists: dict[str, list[CandidateName]] = {}
        for name in [*itertools.islice(self._waiting, MOST)]:
            lists.setdefault(self._waiting.pop(name), []).append(name)

        if not self._waiting:
            self._filled.clear()

        return {what: tuple(names) for what, names in lists.items()}


@asynccontextmanager
async def telling(tell: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have what is said on a stream sent beside the block, which listens."""
    task = asyncio.create_task(tell, name="stream")
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
