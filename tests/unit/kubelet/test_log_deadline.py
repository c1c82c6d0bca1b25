"""A log that does not begin ends, unless it may have to wait for its first line."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from tests.unit.kubelet.test_hostile_targets import ask
from tests.virtual_nodes import node
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
