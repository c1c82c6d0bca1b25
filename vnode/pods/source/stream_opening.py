"""Opens a stream to the agent of a target, and has it say which replica answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from vnode.api.token_bucket import TokenBucket
from vnode.kube import websockets
from vnode.pods import stream_messages
from vnode.pods.stream_channel import FRAMES, Channel, WebSocketChannel
from vnode.pods.stream_messages import Hello, StreamEnded, Welcome
from vnode.runtime.link import Link

_FIRST: Final = 10.0  # seconds until a target has answered
_HEARTBEAT: Final = 10.0  # seconds of silence after which a target is asked whether it is there

OpenChannel = Callable[[Link, TokenBucket], AbstractAsyncContextManager[Channel]]
"""Connects to the Service for streams of a target, which may send frames that the bucket has.

VnodeError if that fails.
"""


@asynccontextmanager
async def open_channel(link: Link, frames: TokenBucket) -> AsyncIterator[Channel]:
    """Connect to a target's agent, through its API server."""
    path = stream_messages.path(link.streams_namespace)
    async with websockets.connect(
        *(link.client, path, (), stream_messages.PROTOCOL),
        largest=stream_messages.LARGEST,
        limit=FRAMES,
        frames=frames,
        heartbeat=_HEARTBEAT,
    ) as socket:
        yield WebSocketChannel(socket)


async def greet(channel: Channel, secret: str) -> str:
    """Tell a target who this is; return which replica answers."""
    try:
        async with asyncio.timeout(_FIRST):
            await channel.send(stream_messages.encode(Hello(secret)))
            return stream_messages.decode(Welcome, await channel.receive()).replica
    except TimeoutError:
        raise StreamEnded("the target did not answer") from None
