"""The routes of several virtual nodes in one process."""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from typing import cast

import pytest
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from tests import virtual_nodes
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.kube import urgency
from vnode.kube.urgency import Urgency
from vnode.kubelet import queries
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.refusal import Refused
from vnode.kubelet.routes import Routes
from vnode.kubelet.stream_openings import StreamOpenings
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.routes import Streams
from vnode.runtime.links import Links


def routes_of(node: str, streams: Streams, openings: StreamOpenings | None = None) -> Routes:
    served = ServedNode(node, Links(), virtual_nodes.find, lambda _node: [])
    return Routes(served, cast("Gate", virtual_nodes.Open()), streams, openings=openings)


class RecordedOpenings(StreamOpenings):
    """Refuses all, and keeps the namespaces."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.asked: list[str] = []
        self.sizes: list[int] = []

    async def wait(self, namespace: str, size: int = 0) -> None:
        self.asked.append(namespace)
        self.sizes.append(size)
        raise Refused(429, "too many")


async def test_nodes_share_their_routes_and_each_answers_for_itself() -> None:
    disconnects = DisconnectWatch()
    streams = Streams(disconnects)
    async with AsyncExitStack() as stack:
        stack.callback(disconnects.close)
        for name in ("admiralty-c2", "admiralty-c3"):
            server = TestServer(routes_of(name, streams).application())
            client = await stack.enter_async_context(TestClient(server))
            answer = await client.get("/metrics")
            assert f'node="{name}"' in await answer.text()


async def test_what_is_asked_of_a_node_goes_before_work_in_the_background() -> None:
    def pods(_node: str) -> list[Object]:
        seen.append(urgency.of("GET", "/api/v1/namespaces/a/pods/web"))
        return []

    seen: list[Urgency] = []
    disconnects = DisconnectWatch()
    served = ServedNode("admiralty-c2", Links(), virtual_nodes.find, pods)
    routes = Routes(served, cast("Gate", virtual_nodes.Open()), Streams(disconnects))
    async with AsyncExitStack() as stack:
        stack.callback(disconnects.close)
        client = await stack.enter_async_context(TestClient(TestServer(routes.application())))
        assert (await client.get("/pods")).status == 200

    assert seen == [Urgency.AWAITED]


async def test_a_node_costs_few_objects() -> None:
    """A process may have hundreds; each had 600 objects for the paths alone."""
    disconnects = DisconnectWatch()
    streams = Streams(disconnects)
    routes_of("admiralty-c2", streams).application()  # what all share
    gc.collect()
    before = len(gc.get_objects())
    more = [routes_of(f"admiralty-c{n}", streams).application() for n in range(3, 13)]
    made = len(gc.get_objects()) - before
    disconnects.close()
    assert made < 100 * len(more)


async def test_logs_and_streams_wait_for_their_turn_and_nothing_else() -> None:
    disconnects, openings = DisconnectWatch(), RecordedOpenings()
    app = routes_of("admiralty-c2", Streams(disconnects), openings).application()
    async with AsyncExitStack() as stack:
        stack.callback(disconnects.close)
        client = await stack.enter_async_context(TestClient(TestServer(app)))
        assert (await client.get("/pods")).status == 200
        assert (await client.get("/containerLogs/a/web/main")).status == 429
        assert (await client.post("/exec/b/web/main?command=a")).status == 429
        assert openings.asked == ["a", "b"]
        assert openings.sizes == [0, len("command=a")]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("POST", f"/{stream}/a/web/main") for stream in ("exec", "attach", "run")),
        *(("GET", path) for path in ("/portForward/a/web", "/containerLogs/a/web/main", "/pods")),
    ],
)
async def test_a_query_of_more_parameters_than_are_read_is_refused(method: str, path: str) -> None:
    """A MiB of them took a third of a second of the event loop."""
    disconnects, openings = DisconnectWatch(), RecordedOpenings()
    app = routes_of("admiralty-c2", Streams(disconnects), openings).application()
    async with AsyncExitStack() as stack:
        stack.callback(disconnects.close)
        server = TestServer(app)
        await server.start_server(max_line_size=2**20)
        client = await stack.enter_async_context(TestClient(server))
        answer = await client.request(method, URL(f"{path}?{'&' * queries.MOST}", encoded=True))
        assert (answer.status, openings.asked) == (400, [])
        assert "10001 parameters" in await answer.text()
