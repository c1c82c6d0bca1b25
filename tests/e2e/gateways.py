"""Servers of this machine that agents of a fleet reach, as if they were targets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.kit import Fleet
from vnode.cli import kubeconfigs


def gateway(fleet: Fleet) -> str:
    """Return the address of this machine, as the agent of c1 sees it."""
    c1 = urlsplit(kubeconfigs.read(fleet.kubeconfig("c1"))[0].server)
    return f"{(c1.hostname or '').rpartition('.')[0]}.1"


@asynccontextmanager
async def serving(
    fleet: Fleet, answer: Callable[[web.Request], Awaitable[web.Response]]
) -> AsyncIterator[str]:
    """Yield the address of a server that answers everything so."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    async with TestServer(app, host=gateway(fleet)) as server:
        yield str(server.make_url("")).rstrip("/")


@asynccontextmanager
async def relayed(fleet: Fleet, other: Fleet, name: str) -> AsyncIterator[str]:
    """Run a relay; inside, `fleet` reaches a cluster of another fleet at the address yielded.

    Without the relay, `fleet` has no route to that cluster.
    """
    address = urlsplit(kubeconfigs.read(other.kubeconfig(name))[0].server)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, thither = await asyncio.open_connection(address.hostname, address.port)
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(reader, thither))
            group.create_task(_copy(there, writer))

    server = await asyncio.start_server(relay, gateway(fleet), 0)
    try:
        yield f"https://{gateway(fleet)}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
