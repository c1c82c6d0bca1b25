"""A client moves to another address while it is in use: nothing fails, and watches resume there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests import answering, background
from vnode.api import kinds
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint
from vnode.kube.informer import Informer
from vnode.kube.watching import ListOptions

SECONDS = 10.0
LIST = {"kind": "List", "metadata": {"resourceVersion": "7"}, "items": []}


class Address:
    """One address of an API server: knows what was asked there, and answers GETs once `may_answer`
    is set."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.may_answer = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            self.asked.put_nowait(f"watch {request.query['resourceVersion']}")
        else:
            self.asked.put_nowait(request.path)

        if request.path.endswith("/pods") and "watch" not in request.query:
            return web.json_response(LIST)

        response = web.StreamResponse()
        await response.prepare(request)
        await self.may_answer.wait()
        await response.write(b'"end"')
        return response


@asynccontextmanager
async def addresses() -> AsyncIterator[tuple[Address, Address, Client, Endpoint]]:
    """Yield two addresses, a client at the first one, and the way to the second one."""
    first, second = Address(), Address()
    async with (
        answering.endpoint(second.answer) as other,
        answering.client(first.answer, "c2") as client,
        asyncio.timeout(SECONDS),
    ):
        try:
            yield first, second, client, other
        finally:
            first.may_answer.set()
            second.may_answer.set()


async def move(client: Client, endpoint: Endpoint) -> None:
    async with Client(endpoint, name="c2") as successor:
        await client.move_to(successor)


async def test_a_request_that_is_under_way_is_answered_where_it_was_sent() -> None:
    async with addresses() as (first, second, client, other), asyncio.TaskGroup() as group:
        request = group.create_task(client.request("GET", "/one"))
        assert await first.asked.get() == "/one"
        await move(client, other)
        second.may_answer.set()
        assert await client.request("GET", "/two") == "end"
        assert not request.done()
        first.may_answer.set()
        assert await request == "end"
        assert await second.asked.get() == "/two"


async def test_a_stream_that_is_open_goes_on_until_its_end() -> None:
    async with (
        addresses() as (first, _second, client, other),
        client.stream("GET", "/log", query={}, silence=None) as stream,
    ):
        await move(client, other)
        first.may_answer.set()
        assert await stream.content.read() == b'"end"'


async def test_a_watch_ends_cleanly_and_the_informer_resumes_it_without_a_list() -> None:
    async with addresses() as (first, second, client, other):
        informer = Informer(client, kinds.PODS)
        async with background.running(informer.run()):
            assert await first.asked.get() == kinds.PODS.path(None)
            assert await first.asked.get() == "watch 7"
            await move(client, other)
            assert await second.asked.get() == "watch 7"
            assert informer.failure is None
            assert first.asked.empty()


async def test_a_watch_that_begins_while_the_client_moves_begins_again() -> None:
    async with addresses() as (_first, second, client, other), asyncio.TaskGroup() as group:
        watch = watching.stream(client, ListOptions(kinds.PODS), "7")
        opening = group.create_task(anext(watch))
        await asyncio.sleep(0)
        await move(client, other)
        assert await opening == []
        assert await second.asked.get() == "watch 7"
        await watch.aclose()


async def test_connections_to_addresses_that_were_left_are_closed_once_they_are_idle() -> None:
    async with addresses() as (first, second, client, other):
        first.may_answer.set()
        second.may_answer.set()
        for _ in range(5):
            async with client.stream("GET", "/log", query={}, silence=None):
                await move(client, other)

        await move(client, other)
        assert client._former == []
