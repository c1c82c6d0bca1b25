"""When a log ends that its target does not end."""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import pytest
from aiohttp import web

from tests import answering
from tests.unit.kubelet.test_hostile_targets import ask
from tests.virtual_nodes import node, node_of
from vnode.kubelet import logs

PATH = "containerLogs/default/web/main"


async def test_only_a_log_that_is_followed_may_wait_for_its_first_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kubelet sends the head of its answer with the first line."""
    monkeypatch.setattr(logs, "_OPENING", 0.1)
    asked, written = asyncio.Event(), asyncio.Event()

    async def quiet(_request: web.Request) -> web.Response:
        asked.set()
        await written.wait()
        return web.Response(text="hello")

    async with asyncio.timeout(20), node(quiet) as at:
        followed = asyncio.create_task(ask(at, "GET", f"{PATH}?follow=true", {}))
        await asked.wait()
        status, text = await ask(at, "GET", PATH, {})
        assert (status, "timed out" in text) == (500, True)
        assert not followed.done()
        written.set()
        assert await followed == (200, "hello")


async def test_a_log_breaks_off_when_its_target_is_disconnected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever reads it is to see that it is not whole."""
    caplog.set_level(logging.INFO, logs.__name__)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(b"hello\n")
        return await asyncio.Future()

    async with (
        asyncio.timeout(20),
        answering.client(endless, "c2") as target,
        node_of(target) as at,
        aiohttp.ClientSession() as session,
        session.get(f"{at.make_url('/')}{PATH}?follow=true") as answer,
    ):
        assert await answer.content.readline() == b"hello\n"
        await target.aclose()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()

    assert "broke off" in caplog.text
