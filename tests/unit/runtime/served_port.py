"""A port of a server that runs, for tests of what is bounded there, and connections to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from aiohttp import web

from vnode.runtime.connections import ConnectionLimits
from vnode.runtime.serving import Handler, Server

Streamed = tuple[asyncio.StreamReader, asyncio.StreamWriter]

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
OK = b"HTTP/1.1 200"


async def size(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await request.read())))


class Port:
    """A port of a server that runs, and connections to it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.opened: list[asyncio.StreamWriter] = []

    async def connect(self, sent: bytes = b"") -> Streamed:
        """Open a connection, and send something."""
        streamed = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.opened.append(streamed[1])
        streamed[1].write(sent)
        return streamed

    async def ask(self, sent: bytes) -> bytes:
        """Return the answer to a request on a connection of its own."""
        return await answer(await self.connect(sent))


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[Port]:
    port = Port(server)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.ready.wait()
        try:
            yield port
        finally:
            for writer in port.opened:
                writer.transport.abort()

            task.cancel()


def serve(
    handler: Handler = size, limits: ConnectionLimits | None = None
) -> AbstractAsyncContextManager[Port]:
    app = web.Application(client_max_size=100_000)
    app.add_routes([web.route("*", "/", handler), web.route("*", "/other", size)])
    return running(Server("test", app, "127.0.0.1", 0, limits=limits))


async def answer(streamed: Streamed) -> bytes:
    """Return the line of the answer's status and its body; nothing if the connection ends."""
    try:
        head = await streamed[0].readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        body = await streamed[0].readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""

    return head[: len(OK)] + b" " + body


async def ended(streamed: Streamed) -> bool:
    try:
        return await streamed[0].read() == b""
    except ConnectionError:
        return True
