"""Whatever a caller sends to a virtual node: an answer, and never a 500."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from yarl import URL

from tests import virtual_nodes
from tests.virtual_nodes import POD, TARGET, Open
from vnode.api.errors import Unreachable
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.store import Store
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.routes import Routes
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.routes import Streams
from vnode.runtime.link import PARENT_UID_INDEX, Link
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links

BAD = pytest.mark.parametrize("bad", ["€".encode(), b"\xff"], ids=["euro", "no text"])


class Asked:
    """Looks pods up, and writes down what it was asked for."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []

    async def find(self, _node: str, namespace: str, name: str) -> Object | None:
        """Return the one pod that there is."""
        self.names.append((namespace, name))
        return POD if (namespace, name) == ("default", "web") else None


class Away:
    """The target's API server, which does not answer."""

    def __getattr__(self, _verb: str) -> Callable[..., Awaitable[None]]:
        async def fail(*_words: object, **_options: object) -> None:
            raise Unreachable("no answer")

        return fail


def connected() -> Links:
    """Return a connection to a target that has no delegates.

    Without any connection, a 500 would be as intended.
    """
    store = Store({PARENT_UID_INDEX: lambda _chaperon: ()})
    none = cast("Informer", SimpleNamespace(store=store))
    health = LinkHealth(True, "Ready", "", datetime.now(UTC))
    links = Links()
    links.add(Link(TARGET, cast("Client", Away()), chaperons=none, summaries=none, health=health))
    return links


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
async def server(asked: Asked) -> AsyncIterator[TestServer]:
    disconnects = DisconnectWatch()
    node = ServedNode(TARGET.node_name, connected(), asked.find, lambda _node: [POD])
    routes = Routes(node, cast("Gate", Open()), Streams(disconnects))
    async with TestServer(routes.application()) as running:
        yield running

    disconnects.close()


_part = st.sampled_from(["default", "web", "main", "u", "..", "%2e%2e", "a%2Fb", "", "%00"]) | (
    st.text(max_size=8).map(lambda text: quote(text, safe=""))
)
_first = st.sampled_from(
    [
        *("containerLogs", "exec", "attach", "portForward", "run", "pods", "runningpods"),
        *("healthz", "configz", "stats", "metrics", "logs", "checkpoint", "debug", "nonsense"),
    ]
)
_query = st.lists(
    st.tuples(
        st.sampled_from(["command", "input", "tty", "follow", "tailLines", "port", "sinceTime"])
        | st.text(max_size=4),
        st.text(max_size=6),
    ),
    max_size=4,
)
_upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    _first,
    st.lists(_part, max_size=5),
    _query,
    st.sampled_from([{}, _upgrade]),
)
@example("POST", "run", ["default", "web", "default"], [], {})
async def test_no_request_is_our_error(server, asked, method, first, parts, query, headers) -> None:
    path = "/".join(["", first, *parts])
    text = "&".join(f"{quote(k, safe='')}={quote(v, safe='')}" for k, v in query)
    url = str(server.make_url("/"))[:-1] + path + (f"?{text}" if text else "")
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, URL(url, encoded=True), headers=headers) as answer,
    ):
        text = await answer.text()
        # /run says 500 of a container that is not there, as a kubelet does.
        assert answer.status != 500 or text.startswith("container not found ("), text

    for pair in asked.names:
        assert not {"/", "%"} & set("".join(pair)), pair


async def test_a_name_that_is_none_is_not_looked_up(server: TestServer, asked: Asked) -> None:
    """It would become part of the path of a request with the agent's rights."""
    async with aiohttp.ClientSession() as session:
        for name in ("..%2Fsecrets%2Fx", "..", "%2e%2e", "A", "a%3Fwatch=1"):
            root = str(server.make_url("/"))
            url = URL(f"{root}containerLogs/default/{name}/main", encoded=True)
            async with session.get(url) as answer:
                assert answer.status in (400, 404)

    assert asked.names == []


@BAD
@pytest.mark.parametrize(
    "line",
    [
        b"GET /containerLogs/default/web/main?sinceTime=%b",
        b"GET /containerLogs/default/web/%b",
        b"POST /run/default/web/main?cmd=%b",
        b"POST /exec/default/web/main?output=1&command=%b",
        b"POST /exec/default/%b/main?output=1&command=x",
        b"GET /attach/default/web/main?output=1&%b=%b",
        b"POST /portForward/default/web?ports=%b",
        b"GET /%b",
    ],
)
async def test_bytes_that_are_no_ascii_get_an_answer(line: bytes, bad: bytes) -> None:
    """They can be passed on nowhere, and are read all the same."""
    async with virtual_nodes.node(_not_there) as server:
        answer = await _answer(server, line + b" HTTP/1.1\r\nConnection: Upgrade", bad)

    assert b"got itself in trouble" not in answer, answer


@BAD
@pytest.mark.parametrize("name", [b"Sec-WebSocket-Protocol", b"Upgrade"])
async def test_a_header_that_cannot_be_passed_on_is_a_bad_request(name: bytes, bad: bytes) -> None:
    head = b"POST /exec/default/web/main?output=1 HTTP/1.1\r\nConnection: Upgrade\r\n" + name
    async with virtual_nodes.node(_not_there) as server:
        answer = await _answer(server, head + b": %b", bad)

    assert answer.split()[1] == b"400"
    assert b"header" in answer


async def _answer(server: TestServer, head: bytes, bad: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(head.replace(b"%b", bad) + b"\r\nHost: x\r\n\r\n")
    try:
        async with asyncio.timeout(10):
            answer = await reader.readuntil(b"\r\n\r\n")
            length = answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
            return answer + await reader.readexactly(int(length))
    finally:
        writer.close()


async def _not_there(_request: web.Request) -> web.Response:
    return web.json_response({"kind": "Status", "apiVersion": "v1", "message": "no"}, status=404)
