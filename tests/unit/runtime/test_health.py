"""Probes and metrics over HTTP, and how a server starts and stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from tests import computing
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.kube import informer
from vnode.kube.informer import Informer
from vnode.runtime.health import ProcessHealth
from vnode.runtime.serving import Handler, Server
from vnode.telemetry import metrics


class SetClock(SystemClock):
    """A clock that stands still unless it is set."""

    moment = 0.0

    def monotonic(self) -> float:
        return self.moment


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


async def test_all_that_scrape_at_once_or_shortly_after_get_one_rendering(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go, clock = threading.Event(), SetClock()
    asked, renderings, scrapes = list[str](), list[int](), list[int]()

    def render() -> bytes:
        renderings.append(1)
        go.wait()
        clock.moment += 1.0
        return b"all"

    def scrape() -> Iterator[None]:
        scrapes.append(1)
        yield

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked.append(request.path)
        return await handler(request)

    monkeypatch.setattr(metrics, "render", render)
    health = ProcessHealth(clock)
    health.on_scrape(scrape)
    app = health.app()
    app.middlewares.append(count)
    async with TestClient(TestServer(app)) as client, asyncio.TaskGroup() as group:
        calls = [group.create_task(client.get("/metrics")) for _ in range(5)]
        while asked.count("/metrics") < 5:
            assert (await client.get("/healthz")).status == 200

        go.set()
        assert [await (await call).read() for call in calls] == [b"all"] * 5
        clock.moment += 2.9  # of a fourth of the time at most, rendering is under way
        assert await (await client.get("/metrics")).read() == b"all"
        assert len(renderings) == len(scrapes) == 1
        clock.moment += 0.2
        assert await (await client.get("/metrics")).read() == b"all"

    assert len(renderings) == len(scrapes) == 2


async def test_gauges_of_a_thousand_targets_are_set_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = APIServer("c1", SystemClock())
    kept = (kinds.PODS, kinds.SECRETS, kinds.SERVICES, kinds.CONFIG_MAPS)
    clients = [server.client(name=f"scraped-{number}") for number in range(1000)]
    running = {Informer(client, kind) for client in clients for kind in kept}
    monkeypatch.setattr(informer, "_running", running)
    health = ProcessHealth()
    health.on_scrape(informer.measure)
    async with TestClient(TestServer(health.app())) as client:
        with computing.steps() as took:
            shown = await (await client.get("/metrics")).text()

    assert max(took) < 0.05
    assert shown.count('vnode_informer_objects{api_server="scraped-') == 4000


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
