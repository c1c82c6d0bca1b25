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

from vnode.api.token_bucket import TokenBucket
from vnode.kube.websocket_frames import FrameLimit
from vnode.pods import stream_messages
from vnode.pods.stream_messages import MOST, CandidateName, StreamEnded

GATHERED: Final = 0.02
"""Seconds from one message to the next, at least."""
LATER: Final = 0.5
"""Seconds that what is not urgent waits for something that is, at most."""
FRAMES: Final = FrameLimit(per_second=200, at_once=2000, counts_messages=True)
"""What one side may send: fifty messages a second is all that an outbox does, in each replica."""
MOST_WAITING: Final = 50_000
"""Candidates of which something waits to be said; there are fewer, unless nothing is read."""
_STRETCH: Final = 0.005  # seconds of work with what is heard, until all others have their turn
_SHARE: Final = 0.25  # of the time, over time, for what one other side says
_SENT: Final = 30.0  # seconds until a message is on its way


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
        self._is_full = False

    def __len__(self) -> int:
        """Return of how many candidates something waits to be said."""
        return len(self._waiting)

    def put(self, name: CandidateName, what: str, *, is_urgent: bool = True) -> None:
        """Have something said of a candidate, in the list of a message that is called so."""
        self._waiting.pop(name, None)
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self._is_full = True

        if not self._is_full:
            self._waiting[name] = what

        self._filled.set()
        if is_urgent:
            self._pressing.set()

    def drop(self, name: CandidateName) -> None:
        """Forget what waits to be said of a candidate."""
        self._waiting.pop(name, None)

    async def take(self) -> dict[str, tuple[CandidateName, ...]]:
        """Wait for something to say; return the lists of one message.

        Raises StreamEnded if there was too much, of which nothing is kept.
        """
        await self._filled.wait()
        if self._is_full:
            raise StreamEnded("the other side does not read")

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


class Attention:
    """What one other side may have of an agent's time, on all of its streams together.

    What takes long to work with is followed by as long a pause, in which none of them is heard; by
    a longer one where much has to be worked with all the time.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._spent = 0.0
        self._budget = TokenBucket(_SHARE, 1.0)

    async def work(self, handle: Callable[[str], None], text: str) -> None:
        """Call a function with a message, once it is its turn."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            begun = loop.time()
            try:
                handle(text)
            finally:
                self._spent += loop.time() - begun

            if self._spent > _STRETCH:
                spent, self._spent = self._spent, 0.0
                await asyncio.sleep(max(spent, self._budget.reserve(loop.time(), spent)))


async def receive_all(
    channel: Channel, handle: Callable[[str], None], attention: Attention | None = None
) -> NoReturn:
    """Call a function with each message that comes, until the stream ends, by StreamEnded.

    Streams of one other side share its `attention`.
    """
    attention = attention or Attention()
    while True:
        await attention.work(handle, await channel.receive())


@asynccontextmanager
async def sending(
    channel: Channel, outbox: Outbox, kind: Callable[..., msgspec.Struct]
) -> AsyncIterator[None]:
    """Have messages of a kind sent beside the block, which listens, until either ends the stream.

    Raises StreamEnded if it ends.
    """
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_send_all(channel, outbox, kind), name="stream")
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as failed:
        ended, others = failed.split(StreamEnded)
        if others is not None or ended is None:
            raise

        raise StreamEnded(str(ended.exceptions[0])) from failed


async def _send_all(
    channel: Channel, outbox: Outbox, kind: Callable[..., msgspec.Struct]
) -> NoReturn:
    while True:
        text = stream_messages.encode(kind(**await outbox.take()))
        try:
            async with asyncio.timeout(_SENT):
                await channel.send(text)
        except TimeoutError:
            raise StreamEnded("the other side does not read") from None

        await asyncio.sleep(GATHERED)
