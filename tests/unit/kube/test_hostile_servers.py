"""The API server of a target may be anybody's: what it answers is bounded and not believed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from vnode.api import kinds
from vnode.api.errors import ApiError, Unreachable
from vnode.kube import answers, watching
from vnode.kube import client as clients
from vnode.kube.client import Client
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.kube.watching import Selection

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[Client]:
    """A client of a server that answers everything so."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(TestServer(app))
        where = Endpoint(str(running.make_url("")).rstrip("/"), None, Constant("Bearer secret"))
        yield await stack.enter_async_context(Client(where, name="hostile"))


async def test_a_redirect_is_not_followed() -> None:
    """It could lead to a server that only the agent can reach."""
    paths = []

    async def redirect(request: web.Request) -> web.Response:
        paths.append(request.path)
        raise web.HTTPFound("/elsewhere")

    async with server(redirect) as client:
        with pytest.raises(ApiError, match="302"):
            await client.get(kinds.PODS, "x", "default")

        with pytest.raises(ApiError, match="302"):
            async with client.stream("GET", "/api/v1/pods", query={}, silence=5):
                pass

    assert "/elsewhere" not in paths


async def test_words_of_other_servers_are_not_passed_on() -> None:
    """Conditions show our errors to those who write Targets: no way to read the network by them."""

    async def secret(_request: web.Request) -> web.Response:
        return web.json_response({"message": "the password is 1234"}, status=403)

    async with server(secret) as client:
        with pytest.raises(ApiError) as caught:
            await client.get(kinds.PODS, "x", "default")

    assert "1234" not in str(caught.value)
    assert "not in the words of an API server" in str(caught.value)


async def test_an_answer_without_bounds_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LIMIT", 100_000)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 10_000)
        except ConnectionError:
            return response

    async with server(endless) as client:
        with pytest.raises(Unreachable, match="more than 100000 bytes"):
            await client.get(kinds.PODS, "x", "default")


async def test_a_compressed_answer_is_measured_as_it_unfolds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "LIMIT", 100_000)

    async def bomb(_request: web.Request) -> web.Response:
        response = web.Response(body=b" " * 10_000_000)
        response.enable_compression(web.ContentCoding.gzip)
        return response

    async with server(bomb) as client:
        with pytest.raises(Unreachable, match="more than 100000 bytes"):
            await client.get(kinds.PODS, "x", "default")


async def test_a_list_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MOST_OBJECTS", 1000)

    async def page(_request: web.Request) -> web.Response:
        return web.json_response({"metadata": {"continue": "more"}, "items": [{}] * 500})

    async with server(page) as client:
        with pytest.raises(Unreachable, match="has no end"):
            await client.list(kinds.PODS)


@pytest.mark.parametrize(
    "line",
    [
        b'"a string"',
        b'{"type": "ADDED", "object": 5}',
        b'{"type": "ERROR", "object": {"code": "x"}}',
        b'{"type": "ADDED", "object": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
        b"x" * 2_000_000,
    ],
    ids=["string", "no object", "bad code", "deep", "long"],
)
async def test_nonsense_on_a_watch_ends_it(monkeypatch: pytest.MonkeyPatch, line: bytes) -> None:
    monkeypatch.setattr(watching, "LINE_LIMIT", 1_000_000)

    async def watch(_request: web.Request) -> web.Response:
        return web.Response(body=line + b"\n")

    async with server(watch) as client:
        with pytest.raises((Unreachable, ApiError)):
            async for _batch in watching.stream(client, Selection(kinds.PODS), "1"):
                pass
