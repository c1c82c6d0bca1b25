"""Names that are answered late keep nobody else from looking up theirs, or from reading a file."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from tests import answering
from vnode.api import kinds
from vnode.api.errors import Unreachable
from vnode.kube.client import Client
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.kube.lookups import ThreadPerLookup

SLOW = "slow.example"
MANY = 40  # more than asyncio has threads


class SlowNames:
    """Looks names up, and answers for one of them only at the end; `arrived` counts its lookups."""

    def __init__(self) -> None:
        self.arrived = asyncio.Semaphore(0)
        self.count = 0
        self.answers = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._look_up = socket.getaddrinfo

    def __call__(self, host: str, *args: Any, **options: Any) -> Any:
        if host != SLOW:
            return self._look_up(host, *args, **options)

        self.count += 1
        self._loop.call_soon_threadsafe(self.arrived.release)
        self.answers.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "try again later")


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowNames]:
    names = SlowNames()
    monkeypatch.setattr(socket, "getaddrinfo", names)
    yield names
    names.answers.set()


async def ended(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait for their end."""
    for task in tasks:
        task.cancel()

    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_name_that_is_not_answered_keeps_nobody_else_waiting(names: SlowNames) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"metadata": {}})

    async with AsyncExitStack() as stack:
        where = await stack.enter_async_context(answering.endpoint(answer))
        named = Endpoint(where.url.replace("127.0.0.1", "localhost"), None, Constant(None))
        other = await stack.enter_async_context(Client(named, name="other"))
        nowhere = Endpoint(f"http://{SLOW}:1", None, Constant(None))
        waiting = []
        for number in range(MANY):
            client = await stack.enter_async_context(Client(nowhere, name=f"slow-{number}"))
            waiting.append(asyncio.create_task(client.get(kinds.PODS, "x", "default")))

        async with asyncio.timeout(4):  # less than a connection may take
            for _ in range(MANY):
                await names.arrived.acquire()

            assert await other.get(kinds.PODS, "x", "default") == {"metadata": {}}
            await asyncio.to_thread(threading.get_ident)

        await ended(waiting)


async def test_a_client_looks_a_name_up_once_for_all_its_requests(names: SlowNames) -> None:
    async with Client(Endpoint(f"http://{SLOW}:1", None, Constant(None)), name="slow") as client:
        requests = [
            asyncio.create_task(client.get(kinds.PODS, str(number), "default"))
            for number in range(MANY)
        ]
        await names.arrived.acquire()
        await asyncio.sleep(0)
        assert names.count == 1
        await ended(requests)


@pytest.mark.parametrize("name", ["nothing.invalid", "a" * 300, "a..b"])
async def test_a_name_that_has_no_address_is_an_error_of_its_target(name: str) -> None:
    async with Client(Endpoint(f"http://{name}:1", None, Constant(None)), name="odd") as client:
        with pytest.raises(Unreachable):
            await client.get(kinds.PODS, "x", "default")


async def test_addresses_are_those_of_the_machine() -> None:
    found = await ThreadPerLookup().resolve("localhost", 80)
    assert {each["host"] for each in found} <= {"127.0.0.1", "::1"}
    assert all(each["port"] == 80 for each in found)
