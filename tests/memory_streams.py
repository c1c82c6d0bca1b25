"""Streams between agents in one process: the real ends of both, and in between nothing but time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from vnode.api.errors import Unreachable
from vnode.api.token_bucket import TokenBucket
from vnode.pods.stream_channel import Channel
from vnode.pods.stream_messages import StreamEnded
from vnode.pods.streams import SourceStreams
from vnode.pods.target import stream_server
from vnode.runtime.link import Link


@dataclass(eq=False)
class MemoryPipe:
    """Carries messages both ways until it is cut; each takes `delay()` seconds."""

    delay: Callable[[], float] = lambda: 0.001
    is_cut: bool = False
    queues: tuple[asyncio.Queue[str | None], asyncio.Queue[str | None]] = field(
        default_factory=lambda: (asyncio.Queue(), asyncio.Queue())
    )

    def ends(self) -> tuple[Channel, Channel]:
        """Return both ends."""
        to_near, to_far = self.queues
        return _End(self, to_near, to_far), _End(self, to_far, to_near)

    def cut(self) -> None:
        """Drop what is under way, and let nothing through any more."""
        self.is_cut = True
        for queue in self.queues:
            queue.put_nowait(None)


@dataclass(eq=False)
class _End:
    pipe: MemoryPipe
    inbox: asyncio.Queue[str | None]
    outbox: asyncio.Queue[str | None]

    async def send(self, text: str) -> None:
        if self.pipe.is_cut:
            raise StreamEnded("cut")

        self.outbox.put_nowait(text)

    async def receive(self) -> str:
        text = await self.inbox.get()
        if text is not None and not self.pipe.is_cut:
            await asyncio.sleep(self.pipe.delay())

        if text is None or self.pipe.is_cut:
            self.inbox.put_nowait(None)
            raise StreamEnded("cut")

        return text


@dataclass(frozen=True)
class StreamPeer:
    """Where streams to a target end: its agent of the moment, if it has one that is reached."""

    replica: str
    streams: Callable[[], SourceStreams | None]
    delay: Callable[[], float] = lambda: 0.001


class MemoryStreams:
    """Connects sources with the agents of targets, by name of the target."""

    is_down = False  # nobody answers

    def __init__(self, peers: Mapping[str, StreamPeer]) -> None:
        self._peers = peers
        self._pipes: dict[str, set[MemoryPipe]] = {name: set() for name in peers}
        self.opened = 0

    def cut(self, target: str) -> None:
        """Cut all streams to a target."""
        for pipe in self._pipes.get(target, ()):
            pipe.cut()

    @asynccontextmanager
    async def connect(self, link: Link, _frames: TokenBucket) -> AsyncIterator[Channel]:
        """Open a stream to the agent of a link's target."""
        peer = self._peers[link.target.name]
        streams = peer.streams()
        if streams is None or self.is_down:
            raise Unreachable("no agent answers")

        pipe = MemoryPipe(peer.delay)
        near, far = pipe.ends()
        self._pipes[link.target.name].add(pipe)
        serving = asyncio.create_task(_serve(streams, far, peer.replica, pipe), name="serve stream")
        self.opened += 1
        try:
            yield near
        finally:
            self._pipes[link.target.name].discard(pipe)
            serving.cancel()
            await asyncio.wait({serving})


async def _serve(streams: SourceStreams, far: Channel, replica: str, pipe: MemoryPipe) -> None:
    try:
        with suppress(StreamEnded):
            await stream_server.serve(streams, far, replica, lambda _digest: None)
    finally:
        pipe.cut()
