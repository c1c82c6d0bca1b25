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
    """Yield the endpoint of a server that answers every request with `answer`."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    async with TestServer(app) as server:
        yield Endpoint(str(server.make_url("")).rstrip("/"), None, Constant("Bearer secret"))


@asynccontextmanager
async def client(answer: Answer, name: str) -> AsyncIterator[Client]:
    """Yield a client named `name` of a server that answers every request with `answer`."""
    async with endpoint(answer) as where, Client(where, name=name) as asking:
        yield asking
