"""A server that is no API server, and a client that takes it for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

from vnode.kube.client import Client
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def endpoint(answer: Answer) -> AsyncIterator[Endpoint]:
    """Of a server that answers everything so."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    async with TestServer(app) as server:
        yield Endpoint(str(server.make_url("")).rstrip("/"), None, Constant("Bearer secret"))


@asynccontextmanager
async def client(answer: Answer, name: str) -> AsyncIterator[Client]:
    """Of such a server."""
    async with endpoint(answer) as where, Client(where, name=name) as asking:
        yield asking
