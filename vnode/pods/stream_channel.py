"""Carries the messages of a stream between the agents of a source and a target.

What is to be said waits in an outbox for a moment after each message, so that a burst of pods needs
few of them: each costs both agents and the API server in between more than all that is in it. Both
sides listen in one task, and send in another one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, NoReturn, Protocol

import aiohttp
import msgspec
from aiohttp import web

from vnode.pods import stream_messages
from vnode.pods.stream_messages import MOST, CandidateName, StreamEnded

GATHERED: Final = 0.02
"""Seconds from one message to the next, at least."""
LATER: Final = 0.5
"""Seconds that what is not urgent waits for something that is, at most."""
_STRETCH: Final = 0.005  # seconds of work with what is heard, until all others have their turn


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
    """Gathers what is to be said of candidates.

    What is said of a candidate last is what counts.
    """

    def __init__(self) -> None:
        self._waiting: dict[CandidateName, str] = {}  # in which list of a message
        self._filled = asyncio.Event()  # set while something waits
        self._pressing = asyncio.Event()  # set while something may wait that is urgent

    def put(self, name: CandidateName, what: str, *, is_urgent: bool = True) -> None:
        """Have something said of a candidate, in the list of a message that is called so."""
        self._waiting.pop(name, None)
        self._waiting[name] = what
        self._filled.set()
        if is_urgent:
            self._pressing.set()

    async def take(self) -> dict[str, tuple[CandidateName, ...]]:
        """Wait for something to say; return the lists of one message."""
        await self._filled.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(LATER):
                await self._pressing.wait()

        lists: dict[str, list[CandidateName]] = {}
        for name in [*itertools.islice(self._waiting, MOST)]:
            lists.setdefault(self._waiting.pop(name), []).append(name)

        if not self._waiting:
            self._filled.clear()
            self._pressing.clear()

        return {what: tuple(names) for what, names in lists.items()}


async def receive_all(channel: Channel, handle: Callable[[str], None]) -> NoReturn:
    """Call a function with each message that comes, until the stream ends, by StreamEnded.

    What takes long to work with is followed by as long a pause.
    """
    loop, spent = asyncio.get_running_loop(), 0.0
    while True:
        text = await channel.receive()
        begun = loop.time()
        handle(text)
        spent += loop.time() - begun
        if spent > _STRETCH:
            await asyncio.sleep(spent)
            spent = 0.0


@asynccontextmanager
async def sending(
    channel: Channel, outbox: Outbox, kind: Callable[..., msgspec.Struct]
) -> AsyncIterator[None]:
    """Have messages of a kind sent beside the block, which listens."""
    task = asyncio.create_task(_send_all(channel, outbox, kind), name="stream")
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _send_all(
    channel: Channel, outbox: Outbox, kind: Callable[..., msgspec.Struct]
) -> NoReturn:
    while True:
        await channel.send(stream_messages.encode(kind(**await outbox.take())))
        await asyncio.sleep(GATHERED)
