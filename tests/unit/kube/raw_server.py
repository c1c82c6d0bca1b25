"""Servers that write bytes as they like, and the client of one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from vnode.kube.client import Client
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def served_by(handler: Handler, name: str) -> AsyncIterator[Client]:
    """Yield a client, of that name, of a server that handles each connection so."""
    async with await asyncio.start_server(handler, "127.0.0.1") as listening:
        host, port = listening.sockets[0].getsockname()
        where = Endpoint(f"http://{host}:{port}", None, Constant(None))
        async with Client(where, name=name) as client:
            yield client
