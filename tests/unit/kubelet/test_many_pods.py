"""A node of ten thousand pods keeps nobody waiting while all of them are gone through."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Self, TypeVar, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tests import virtual_nodes
from tests.computing import BusyClock
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kubelet import info
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.usage import serving
from vnode.kubelet.usage.collector import Collector, PodUsage, UsageReport
from vnode.kubelet.usage.findings import Findings
from vnode.kubelet.usage.points import Point
from vnode.runtime.links import Links

T = TypeVar("T")
HANDLERS = (info.pods, info.running_pods, serving.kubelet)
Handler = Callable[[Clock, ServedNode, web.Request], Awaitable[web.StreamResponse]]


def pod(number: int) -> Object:
    statuses = [{"name": "main", "image": "i", "state": {"running": {}}}]
    return {
        "metadata": {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}"},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


async def no_findings(*_of: object, **_options: object) -> Findings:
    """Read nothing."""
    return Findings()


async def refused(_request: web.Request) -> web.Response:
    """Answer for the target."""
    return web.Response(status=403)


class Turns:
    """Counts, within its block, what is looked at between two turns of others."""

    def __init__(self) -> None:
        self._present = 0
        self.looked_at = Counter[int]()

    async def __aenter__(self) -> Self:
        self._others = asyncio.create_task(self._take())
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._others.cancel()

    async def _take(self) -> None:
        while True:
            self._present += 1
            await asyncio.sleep(0)

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Iterate over items, and count."""
        for item in items:
            self.looked_at[self._present] += 1
            yield item


@pytest.mark.parametrize("handler", HANDLERS)
async def test_others_have_their_turn_between_few_pods(handler: Handler) -> None:
    pods = [pod(number) for number in range(100)]
    async with Turns() as turns:
        node = ServedNode("v", Links(), virtual_nodes.find, lambda _node: turns.over(pods))
        await handler(BusyClock(), node, make_mocked_request("GET", "/pods"))

    assert turns.looked_at.total() == 100
    assert max(turns.looked_at.values()) <= 5


async def test_others_have_their_turn_between_few_values_of_a_report() -> None:
    link = SimpleNamespace(node_name="v", client=None, target=virtual_nodes.TARGET)
    links = cast("Links", {"v": link})
    collector = Collector(ServedNode("v", links, virtual_nodes.find, lambda _node: []), BusyClock())
    point = Point(0.0, 1.0, None, 1)
    usages = [PodUsage(pod(number), point, ()) for number in range(100)]
    async with Turns() as turns:
        pods = cast("tuple[PodUsage, ...]", turns.over(usages))
        assert not await collector._lacks(UsageReport(pods=pods))
        known = {(f"u{number}",): point for number in range(100)}
        collector._points = cast("Any", SimpleNamespace(items=lambda: turns.over(known.items())))
        collector._reader = cast("Any", SimpleNamespace(read=no_findings))
        await collector._read()

    assert turns.looked_at.total() == 200
    assert max(turns.looked_at.values()) <= 5


@pytest.mark.parametrize("path", ["/pods", "/runningpods"])
async def test_a_long_list_is_sent_whole_and_in_pieces(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, write = list[int](), web.StreamResponse.write

    async def noted(response: web.StreamResponse, data: Any) -> None:
        written.append(len(data))
        await write(response, data)

    monkeypatch.setattr(web.StreamResponse, "write", noted)
    pods = [pod(number) for number in range(2000)]
    async with (
        virtual_nodes.node(refused, pods=pods) as server,
        aiohttp.ClientSession() as session,
        session.get(server.make_url(path)) as answer,
    ):
        items = json.loads(await answer.read())["items"]

    assert [item["metadata"]["name"] for item in items] == [f"p{n}" for n in range(2000)]
    assert len(written) > 2
    assert max(written) < 70_000


async def test_no_pods_are_a_list_without_items() -> None:
    async with (
        virtual_nodes.node(refused, pods=()) as server,
        aiohttp.ClientSession() as session,
        session.get(server.make_url("/pods")) as answer,
    ):
        assert await answer.json() == {
            "kind": "PodList",
            "apiVersion": "v1",
            "metadata": {},
            "items": [],
        }
