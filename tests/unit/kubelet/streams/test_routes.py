"""Streams that end as soon as they have begun."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from tests.virtual_nodes import node
from vnode.kubelet.streams import http_upgrade
from vnode.kubelet.streams.upstream import Upstream

ASKED = (
    b"POST /exec/default/web/main?command=true&output=1 HTTP/1.1\r\nHost: x\r\n"
    b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n"
)
ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"


@pytest.mark.parametrize("size", [5, 1_000_000])
async def test_what_a_command_says_that_has_ended_at_once_is_heard(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """kubectl asks once more for what it has not heard, and the command would run twice."""
    asked = 0
    answer = Upstream.answer

    async def late(self: Upstream) -> http_upgrade.Answer:
        """Return the end, where it can be seen before the answer is taken, has come by then."""
        found = await answer(self)
        while size < http_upgrade.HEAD_LIMIT and not self._lost:
            self._received.clear()
            await self._received.wait()

        return found

    monkeypatch.setattr(Upstream, "answer", late)

    async def target(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        assert request.transport is not None
        request.transport.write(ANSWER + b"x" * size)
        request.transport.close()
        return web.Response()

    async with node(target) as at, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(at.host, at.port)
        writer.write(ASKED)
        received = await reader.read(-1)
        writer.close()
        await writer.wait_closed()

    assert received.startswith(b"HTTP/1.1 101 ")
    assert received.endswith(b"\r\n\r\n" + b"x" * size)
    assert asked == 1


async def test_a_command_is_run_with_a_new_token_where_the_former_one_is_refused() -> None:
    shown: list[str] = []

    async def target(request: web.Request) -> web.StreamResponse:
        shown.append(request.headers["Authorization"])
        if shown[-1] != "Bearer new":
            return web.Response(status=401)

        assert request.transport is not None
        request.transport.write(ANSWER + b"works")
        request.transport.close()
        return web.Response()

    class Renewed:
        header = "Bearer old"

        async def __call__(self) -> str | None:
            return self.header

        async def rejected(self, header: str | None) -> bool:
            assert header == "Bearer old"
            self.header = "Bearer new"
            return True

    async with node(target, authorization=Renewed()) as at, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(at.host, at.port)
        writer.write(ASKED)
        received = await reader.read(-1)
        writer.close()
        await writer.wait_closed()

    assert received.endswith(b"works")
    assert shown == ["Bearer old", "Bearer new"]
