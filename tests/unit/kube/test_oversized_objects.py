"""One object that is too large to be read keeps nobody from reading the others.

Whoever may create a pod can make such a one: 780,000 empty arguments are less than the 1.5 MiB that
etcd takes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests import answering, background
from vnode.api import kinds, objects
from vnode.api.errors import TooLarge
from vnode.api.objects import Object
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.transport import METADATA_LIST

MANY = '"args": [' + '"",' * 400_000 + '""]'
DEEP = '"args": ' + "[" * 150 + "]" * 150
DEEPER = '"args": ' + "[" * 5000 + "]" * 5000
LONG = '"args": ["' + "x" * 17_000_000 + '"]'
SIZES = {"many values": MANY, "nested": DEEP, "nested far": DEEPER, "long": LONG}


def pod(name: str, spec: str = '"a": 1') -> str:
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "5"}
    return f'{{"metadata": {json.dumps(metadata)}, "spec": {{{spec}}}}}'


class PodServer:
    """Lists pods in pages, by their metadata too, and sends `events` to the first watch."""

    def __init__(self, pods: dict[str, str]) -> None:
        self.pods = pods
        self.events: asyncio.Queue[str] = asyncio.Queue()
        self.lists = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer any request about pods."""
        name = request.path.rpartition("/")[2]
        if name in self.pods:
            return web.Response(text=self.pods[name])

        if "watch" in request.query:
            return await self._watch(request)

        return self._page(request)

    def _page(self, request: web.Request) -> web.Response:
        start, count = int(request.query.get("continue", "0")), int(request.query["limit"])
        self.lists += not start
        names = list(self.pods)[start : start + count]
        more = str(start + count) if start + count < len(self.pods) else ""
        is_whole = request.headers["Accept"] != METADATA_LIST
        items = [self.pods[name] if is_whole else pod(name, "") for name in names]
        head = json.dumps({"resourceVersion": "7", "continue": more})
        return web.Response(
            text=f'{{"kind": "PodList", "metadata": {head}, "items": [{", ".join(items)}]}}'
        )

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while event := await self.events.get():
            await response.write(f"{event}\n".encode())

        return response

    def end_watches(self) -> None:
        """Let the server end at once; a watch may have been resumed a few times."""
        for _ in range(9):
            self.events.put_nowait("")


@pytest.fixture(params=SIZES)
def spec(request: pytest.FixtureRequest) -> str:
    return SIZES[request.param]


@pytest.fixture
def server(spec: str) -> PodServer:
    """Return a server of three pods, one of which is too large."""
    return PodServer({"a": pod("a"), "b": pod("b", spec), "c": pod("c")})


@pytest.fixture
async def client(server: PodServer) -> AsyncIterator[Client]:
    async with answering.client(server.serve, "c1") as client:
        yield client
        server.end_watches()


def names(found: Any) -> list[str]:
    return sorted(objects.name(obj) for obj in found)


async def test_a_list_is_read_without_it(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    found, version = await client.list_at(kinds.PODS)
    assert (names(found), version) == (["a", "c"], "7")
    assert "c1 has pods/default/b, which is too large to be read" in caplog.text


async def test_a_target_does_not_send_many_of_them_for_nothing(client: Client) -> None:
    with pytest.raises(TooLarge, match="a list of pods has more than 1000000 bytes"):
        await client.list_at(kinds.PODS, limit=AnswerLimit(1_000_000, 10_000))


async def test_a_watch_goes_on_after_it(server: PodServer, client: Client, spec: str) -> None:
    server.pods = {"b": pod("b"), "a": pod("a")}
    informer = Informer(client, kinds.PODS)
    seen: asyncio.Queue[tuple[str, bool]] = asyncio.Queue()
    informer.subscribe(
        lambda old, new: seen.put_nowait((objects.name(objects.latest(old, new)), bool(new)))
    )
    async with background.running(informer.run()), asyncio.timeout(30):
        assert {await seen.get(), await seen.get()} == {("a", True), ("b", True)}
        server.pods = {"a": pod("a"), "b": pod("b", spec), "c": pod("c")}
        for event in (pod("b", spec), pod("c")):
            server.events.put_nowait(f'{{"type": "MODIFIED", "object": {event}}}')

        assert {await seen.get(), await seen.get()} == {("b", False), ("c", True)}
        assert names(informer.store.values()) == ["a", "c"]


@pytest.mark.parametrize("spec", [MANY, DEEP], ids=["many values", "nested"], indirect=False)
async def test_it_leads_to_no_list_for_each_of_its_changes(spec: str) -> None:
    server = PodServer({"a": pod("a")})
    async with answering.client(server.serve, "c1") as client:
        informer, is_last = Informer(client, kinds.PODS), asyncio.Event()

        def note(_old: Object | None, new: Object | None) -> None:
            if objects.name(new or {}) == "c":
                is_last.set()

        informer.subscribe(note)
        async with background.running(informer.run()), asyncio.timeout(30):
            await informer.synced.wait()
            for event in [pod("b", spec)] * 5 + [pod("c")]:
                server.events.put_nowait(f'{{"type": "MODIFIED", "object": {event}}}')

            await is_last.wait()

        server.end_watches()

    assert server.lists == 1
