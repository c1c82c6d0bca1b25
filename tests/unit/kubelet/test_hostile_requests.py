"""Whatever a caller sends to a virtual node: an answer, and never a 500."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yarl import URL

from vnode.api.objects import Object
from vnode.kubelet.access import Gate
from vnode.kubelet.delegates import VirtualNode
from vnode.kubelet.hangups import HangupWatch
from vnode.kubelet.routes import Routes
from vnode.kubelet.streaming import Streams
from vnode.runtime.links import Links

POD: Object = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u"},
    "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
}


class Open:
    """A gate that lets everybody in: the routes behind it are what is tested."""

    async def check(self, _node: str, _request: Any) -> None:
        """Anybody may."""


class Asked:
    """Looks pods up, and writes down what it was asked for."""

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []

    async def find(self, _node: str, namespace: str, name: str) -> Object | None:
        """The one pod that there is."""
        self.names.append((namespace, name))
        return POD if (namespace, name) == ("default", "web") else None


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
async def server(asked: Asked) -> AsyncIterator[TestServer]:
    hangups = HangupWatch()
    node = VirtualNode("n", Links(), asked.find, lambda _node: [POD])
    routes = Routes(node, cast("Gate", Open()), Streams(hangups))
    async with TestServer(routes.application()) as running:
        yield running

    hangups.close()


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
async def test_no_request_is_a_500(server, asked, method, first, parts, query, headers) -> None:
    path = "/".join(["", first, *parts])
    text = "&".join(f"{quote(k, safe='')}={quote(v, safe='')}" for k, v in query)
    url = str(server.make_url("/"))[:-1] + path + (f"?{text}" if text else "")
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, URL(url, encoded=True), headers=headers) as answer,
    ):
        # This node has no connection, and that is how a kubelet says that it is not well.
        unwell = method == "GET" and path == "/healthz"
        assert answer.status != 500 or unwell, await answer.text()

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
