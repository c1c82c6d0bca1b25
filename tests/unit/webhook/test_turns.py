"""Costly reviews of one namespace do not keep those of another waiting for their end."""

from __future__ import annotations

import asyncio
import json
import logging
import time

import pytest
from aiohttp import ClientSession, ClientTimeout, web

from tests import background
from vnode.api import webhook_paths
from vnode.api.clock import SystemClock
from vnode.runtime import serving
from vnode.runtime.serving import Server
from vnode.webhook import turns
from vnode.webhook.server import routes
from vnode.webhook.turns import ReviewTurns

COSTLY = 0.002  # seconds: longer than the rest of a request takes


def review(namespace: str) -> dict[str, object]:
    return {"request": {"uid": "u", "namespace": namespace, "object": {"metadata": {}}}}


class Answering:
    """A server of which a review of namespace `busy` takes long, and one of an author waits."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.authors = asyncio.Event()
        app = web.Application()
        app.add_routes(routes(webhook_paths.PODS, self._answer))
        app.add_routes(routes(webhook_paths.AUTHORS, self._wait))
        self.taken = ReviewTurns(SystemClock())
        self.server = Server("webhook", app, "127.0.0.1", 0, turns=self.taken.take)

    async def _answer(self, request: web.Request) -> web.Response:
        namespace = (await request.json())["request"]["namespace"]
        end = time.thread_time() + (COSTLY if namespace == "busy" else 0)
        while time.thread_time() < end:
            pass

        self.done.append(namespace)
        return web.Response()

    async def _wait(self, _request: web.Request) -> web.Response:
        await self.authors.wait()
        return web.Response()

    async def ask(self, session: ClientSession, namespace: str, path: str) -> int:
        url = f"http://127.0.0.1:{self.server.port}{path}"
        async with session.post(url, json=review(namespace)) as answer:
            return answer.status


def test_a_namespace_that_none_can_be_called_is_not_kept():
    """The process tells the agent of waits by namespace, in a line of bounded length."""
    body = json.dumps(review("x" * 70_000)).encode()
    assert turns._namespace_of(body) == ""
    assert turns._namespace_of(json.dumps(review("x" * 63)).encode()) == "x" * 63


async def test_a_pod_waits_for_few_reviews_of_others_however_many_there_are(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_MANY", 10)
    monkeypatch.setattr(serving, "_TURN", 60.0)  # of a machine that has much else to do
    env = Answering()
    async with background.running(env.server.run()), ClientSession() as session:
        await env.server.ready.wait()
        async with asyncio.TaskGroup() as group:
            for _ in range(60):
                group.create_task(env.ask(session, "busy", webhook_paths.PODS))

            while not env.done:  # noqa: ASYNC110 - a list has no event
                await asyncio.sleep(0.01)

            for _ in range(3):
                before = len(env.done)
                assert await env.ask(session, "quiet", webhook_paths.PODS) == 200
                # Its connection is made meanwhile, by the same loop, which takes some passes.
                assert env.done.index("quiet", before) <= before + 10

    assert env.done.count("busy") == 60
    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 1
    assert "namespace 'busy' wait for each other" in told[0].getMessage()


async def test_pods_do_not_wait_for_what_the_api_server_is_asked_about_authors() -> None:
    env = Answering()
    async with background.running(env.server.run()), ClientSession() as session:
        await env.server.ready.wait()
        async with asyncio.TaskGroup() as group:
            for _ in range(30):
                group.create_task(env.ask(session, "team", webhook_paths.AUTHORS))

            await asyncio.sleep(0.1)
            assert await env.ask(session, "team", webhook_paths.PODS) == 200
            env.authors.set()


async def test_nobody_answers_whoever_has_gone() -> None:
    """An API server gives up after ten seconds: its reviews would keep others waiting."""
    env = Answering()
    async with background.running(env.server.run()):
        await env.server.ready.wait()
        body = json.dumps(review("busy")).encode()
        head = f"POST {webhook_paths.PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        for _ in range(100):
            _reader, writer = await asyncio.open_connection("127.0.0.1", env.server.port)
            writer.write(head.encode() + b"\r\n" + body)
            await writer.drain()
            writer.transport.abort()

        async with ClientSession() as session:
            assert await env.ask(session, "busy", webhook_paths.PODS) == 200

    assert len(env.done) < 50


@pytest.mark.parametrize("path", [webhook_paths.PODS, webhook_paths.AUTHORS])
async def test_an_api_server_is_answered_before_it_shows_its_user_the_secret_path(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It quotes the address of what does not answer in time, and asks again when told to."""
    monkeypatch.setattr(serving, "_TURN", 0.1)
    monkeypatch.setattr(turns, "_ANSWERED", 0.2)
    env, waiting = Answering(), ClientSession(timeout=ClientTimeout(total=3))
    async with background.running(env.server.run()), waiting as session:
        await env.server.ready.wait()
        env.taken._budget.charge("team", 60.0)  # by costly reviews of the same user
        url = f"http://127.0.0.1:{env.server.port}{path}"
        async with session.post(url, json=review("team")) as answer:
            assert answer.status == 503
            assert "Retry-After" not in answer.headers


@pytest.mark.parametrize("body", [b"", b"[", b"{}", b'{"request":{"namespace":1}}'])
async def test_a_body_that_is_no_review_has_its_turn_too(body: bytes) -> None:
    app = web.Application()

    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(status=400)

    app.add_routes(routes(webhook_paths.PODS, refuse))
    taken = ReviewTurns(SystemClock()).take
    server = Server("webhook", app, "127.0.0.1", 0, turns=taken)
    async with background.running(server.run()), ClientSession() as session:
        await server.ready.wait()
        url = f"http://127.0.0.1:{server.port}{webhook_paths.PODS}"
        async with session.post(url, data=body) as answer:
            assert answer.status == 400
