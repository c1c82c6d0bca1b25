"""Probes and metrics over HTTP, and how a server starts and stops."""

from __future__ import annotations

import asyncio
import threading

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from vnode.api.errors import ConfigError
from vnode.runtime.health import ProcessHealth
from vnode.runtime.serving import Handler, Server
from vnode.telemetry import metrics


async def test_readiness_names_what_fails() -> None:
    health = ProcessHealth()
    synced = asyncio.Event()
    health.add_event("informers", synced)
    health.add("broken", lambda: str(1 / 0))
    async with TestClient(TestServer(health.app())) as client:
        assert (await client.get("/healthz")).status == 200
        response = await client.get("/readyz")
        assert response.status == 503
        assert await response.text() == (
            "broken: the check failed: division by zero\ninformers: not yet\n"
        )
        synced.set()
        health.remove("broken")
        assert (await client.get("/readyz")).status == 200


async def test_metrics_are_in_the_text_format() -> None:
    async with TestClient(TestServer(ProcessHealth().app())) as client:
        response = await client.get("/metrics")
        assert response.content_type == "text/plain"
        assert "vnode_leader" in await response.text()


async def test_all_that_scrape_at_once_or_shortly_after_get_one_rendering(monkeypatch) -> None:
    go, asked, renderings, scrapes, now = threading.Event(), [], [], [], [0.0]

    def render() -> bytes:
        renderings.append(1)
        go.wait()
        now[0] += 1.0
        return b"all"

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked.append(request.path)
        return await handler(request)

    monkeypatch.setattr(metrics, "render", render)
    health = ProcessHealth(lambda: now[0])
    health.on_scrape(lambda: scrapes.append(1))
    app = health.app()
    app.middlewares.append(count)
    async with TestClient(TestServer(app)) as client, asyncio.TaskGroup() as group:
        calls = [group.create_task(client.get("/metrics")) for _ in range(5)]
        while asked.count("/metrics") < 5:
            assert (await client.get("/healthz")).status == 200

        go.set()
        assert [await (await call).read() for call in calls] == [b"all"] * 5
        now[0] += 2.9  # of a fourth of the time at most, rendering is under way
        assert await (await client.get("/metrics")).read() == b"all"
        assert len(renderings) == len(scrapes) == 1
        now[0] += 0.2
        assert await (await client.get("/metrics")).read() == b"all"

    assert len(renderings) == len(scrapes) == 2


async def test_a_server_lets_a_running_handler_finish() -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def slow(_request: web.Request) -> web.Response:
        entered.set()
        await go.wait()
        return web.Response(text="done")

    app = web.Application()
    app.add_routes([web.get("/", slow)])
    server = Server("test", app, "127.0.0.1", 0)
    async with asyncio.TaskGroup() as group, aiohttp.ClientSession() as session:
        task = group.create_task(server.run())
        await server.ready.wait()
        call = group.create_task(session.get(f"http://127.0.0.1:{server.port}/"))
        await entered.wait()
        task.cancel()
        await asyncio.sleep(0)
        go.set()
        assert await (await call).text() == "done"

    assert not server.ready.is_set()


async def test_a_taken_address_is_said_so() -> None:
    first = Server("first", web.Application(), "127.0.0.1", 0)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(first.run())
        await first.ready.wait()
        with pytest.raises(ConfigError, match=r"second cannot listen on 127\.0\.0\.1"):
            await Server("second", web.Application(), "127.0.0.1", first.port).run()

        task.cancel()
