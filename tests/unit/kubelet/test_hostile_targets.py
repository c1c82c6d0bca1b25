"""A target may be anybody's server: what users see of its answers by logs, exec and the like."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.kube.informer import Informer
from vnode.kube.store import Store
from vnode.kubelet.access import Gate
from vnode.kubelet.delegates import VirtualNode
from vnode.kubelet.hangups import HangupWatch
from vnode.kubelet.routes import Routes
from vnode.kubelet.streaming import Streams
from vnode.runtime.links import PARENT_UID_INDEX, Health, Link, Links, TargetKey

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

TARGET = TargetKey("default", "c2")
POD: Object = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u"},
    "spec": {"nodeName": TARGET.node_name, "containers": [{"name": "main"}]},
}
CHAPERON: Object = {"metadata": {"name": "web-1", "namespace": "default"}}
SECRET = "the password is 1234"
STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no such thing"}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
ROUTES = [
    ("GET", "containerLogs/default/web/main", {}),
    ("POST", "exec/default/web/main?command=x&output=1", UPGRADE),
    ("GET", "attach/default/web/main?output=1", UPGRADE),
    ("POST", "portForward/default/web", UPGRADE),
    ("POST", "run/default/web/main?cmd=x", {}),
]
EACH_ROUTE = pytest.mark.parametrize(
    ("method", "path", "headers"), ROUTES, ids=[path.partition("/")[0] for _, path, _ in ROUTES]
)


class Open:
    """A gate that lets everybody in."""

    async def check(self, _node: str, _request: Any) -> None:
        """Anybody may."""


async def find(_node: str, _namespace: str, _name: str) -> Object | None:
    """The one pod that there is."""
    return POD


@asynccontextmanager
async def node(answer: Answer) -> AsyncIterator[TestServer]:
    """A virtual node whose target answers everything so."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(TestServer(app))
        where = Endpoint(str(target.make_url("")).rstrip("/"), None, Constant("Bearer secret"))
        client = await stack.enter_async_context(Client(where, name="c2"))
        store = Store({PARENT_UID_INDEX: lambda _chaperon: "u"})
        store.put(CHAPERON)
        chaperons = cast("Informer", SimpleNamespace(store=store))
        health = Health(True, "Ready", "", datetime.now(UTC))
        links = Links()
        links.add(Link(TARGET, client, chaperons=chaperons, summaries=chaperons, health=health))
        hangups = HangupWatch()
        stack.callback(hangups.close)
        virtual = VirtualNode(TARGET.node_name, links, find)
        routes = Routes(virtual, cast("Gate", Open()), Streams(hangups))
        yield await stack.enter_async_context(TestServer(routes.application()))


async def ask(at: TestServer, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    """Status and text of an answer."""
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{at.make_url('/')}{path}", headers=headers) as response,
    ):
        return response.status, await response.text()


@pytest.mark.parametrize("status", [200, 403, 404, 500])
@pytest.mark.parametrize("kind", ["text/html", "application/json"])
@EACH_ROUTE
async def test_a_body_of_another_server_is_not_passed_on(
    method: str, path: str, headers: dict[str, str], kind: str, status: int
) -> None:
    async def other(_request: web.Request) -> web.Response:
        body = msgspec.json.encode({"message": SECRET, "kind": "List", "status": SECRET})
        return web.Response(body=body, status=status, reason=SECRET, content_type=kind)

    async with node(other) as at:
        found, text = await ask(at, method, path, headers)

    assert found >= 400
    assert "1234" not in text


@EACH_ROUTE
async def test_a_body_that_is_plain_text_is_no_reason_to_believe_an_error(
    method: str, path: str, headers: dict[str, str]
) -> None:
    async def other(_request: web.Request) -> web.Response:
        return web.Response(text=f'container not found ("main")\n{SECRET}', status=500)

    async with node(other) as at:
        _status, text = await ask(at, method, path, headers)

    assert "1234" not in text


@pytest.mark.parametrize("path", [path for _, path, headers in ROUTES if headers])
async def test_the_words_of_an_api_server_are_passed_on_and_nothing_beside_them(path: str) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({**STATUS, "more": SECRET}, status=404)

    async with node(refuse) as at:
        found, text = await ask(at, "POST", path, UPGRADE)

    assert (found, msgspec.json.decode(text)) == (404, STATUS)


async def test_what_a_kubelet_says_of_a_container_that_is_gone_is_passed_on() -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(text='container not found ("main")\n', status=500)

    async with node(refuse) as at:
        found = await ask(at, "POST", "exec/default/web/main?command=x&output=1", UPGRADE)

    assert found == (500, 'container not found ("main")')


async def test_a_status_without_a_bottom_is_no_status() -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(body=b'{"a":' * 10_000, status=500)

    async with node(refuse) as at:
        found, _text = await ask(at, "POST", "portForward/default/web", UPGRADE)

    assert found == 500


async def test_a_log_is_passed_on_as_it_is() -> None:
    async def log(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(b"one\n\xff")
        return response

    async with (
        node(log) as at,
        aiohttp.ClientSession() as session,
        session.get(at.make_url("/containerLogs/default/web/main")) as response,
    ):
        assert (response.status, await response.read()) == (200, b"one\n\xff")
