"""Whoever leaves a client leaves no connection behind; what servers say of their pace is heard."""

from __future__ import annotations

import asyncio
import gc
import json
import socket

import pytest
from aiohttp import web

from tests import answering
from vnode.api import kinds
from vnode.api.errors import TooManyRequests
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.watching import ListOptions


async def test_all_is_closed_although_whoever_closes_is_cancelled_again() -> None:
    """As where a connection ends, and then the agent: two thirds of the sockets once stayed.

    A session that is not closed warns when it is collected, which is an error here.
    """

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"metadata": {}})

    async with answering.endpoint(answer) as where:
        asked = asyncio.Event()

        async def use() -> None:
            async with Client(where, name="test") as client:
                await client.get(kinds.PODS, "x", "default")
                await client.get(kinds.LEASES, "x", "default")
                asked.set()
                await asyncio.Event().wait()

        using = asyncio.create_task(use())
        await asked.wait()
        while not using.done():
            using.cancel()
            await asyncio.sleep(0)

    assert using.cancelled()
    del using, use
    gc.collect()


async def test_what_is_called_leases_takes_no_connection_of_leases() -> None:
    """Leases have four: whoever names pods could keep an agent from renewing its own."""
    arrived, may_answer = asyncio.Semaphore(0), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        if "pods" in request.path:
            arrived.release()
            await may_answer.wait()

        return web.json_response({"metadata": {}})

    async with (
        answering.endpoint(answer) as where,
        Client(where, name="test") as client,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(8):
            group.create_task(client.get(kinds.PODS, "leases", "leases"))

        async with asyncio.timeout(5):
            for _ in range(8):
                await arrived.acquire()

            await client.get(kinds.LEASES, "x", "default")

        may_answer.set()


LINUX = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")


async def test_a_connection_that_only_listens_is_asked_for_signs_of_life() -> None:
    """As a watch does: a NAT gateway may forget it without a word to either side."""
    read = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}")
        await read.wait()
        return response

    async with (
        answering.client(answer, "test") as client,
        client.stream("GET", "/", query={}, silence=5) as response,
    ):
        assert response.connection is not None
        assert response.connection.transport is not None
        kept = response.connection.transport.get_extra_info("socket")
        read.set()
        options = [getattr(socket, name) for name in LINUX if hasattr(socket, name)]
        found = [kept.getsockopt(socket.IPPROTO_TCP, option) for option in options]
        assert kept.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert len(options) < len(LINUX) or found == [15, 5, 3, 30_000]


async def test_a_watch_that_says_nothing_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load balancer that answers the kernel's probes may have lost the server behind it."""
    monkeypatch.setattr(watching, "SILENCE", 0.05)
    versions: asyncio.Queue[str] = asyncio.Queue()
    over = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            metadata = {"resourceVersion": "5"}
            return web.json_response({"kind": "PodList", "metadata": metadata, "items": []})

        versions.put_nowait(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}
        await response.write(json.dumps(bookmark).encode() + b"\n")
        await over.wait()
        return response

    async with answering.client(answer, "test") as client:
        informer = Informer(client, kinds.PODS)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            running = group.create_task(informer.run())
            assert [await versions.get() for _ in range(3)] == ["5", "7", "7"]
            assert informer.failure is None
            running.cancel()

        over.set()


async def test_what_a_server_says_in_its_head_is_the_pause_of_short_requests_and_watches() -> None:
    """As an API server refuses: without a Status, by the header `Retry-After`."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=429, text="Too many requests", headers={"Retry-After": "50"})

    def left(client: Client) -> float:
        return client.pacer.pace.until - asyncio.get_running_loop().time()

    async with answering.endpoint(answer) as where:
        async with Client(where, name="c2") as client:
            with pytest.raises(TooManyRequests):
                await client.get(kinds.PODS, "x", "default")

            assert 40 < left(client) <= 50

        async with Client(where, name="c2") as client:
            with pytest.raises(TooManyRequests):
                await anext(watching.stream(client, ListOptions(kinds.PODS), ""))

            assert 40 < left(client) <= 50

        async with Client(where, name="c2") as client:
            with pytest.raises(TooManyRequests):  # of a kubelet, perhaps
                async with client.stream("GET", "/log", query={}, silence=None):
                    pass

            assert left(client) < 0
