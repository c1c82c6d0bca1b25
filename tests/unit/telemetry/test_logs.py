"""What is written to the log, and what is not."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Iterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from vnode.telemetry import logs


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The log of a process that is configured as ours are."""
    root, server = logging.getLogger(), logging.getLogger("aiohttp.server")
    before = root.handlers[:], root.level, server.filters[:]
    stream = io.StringIO()
    logs.configure("debug", "text", stream)
    yield stream
    root.handlers[:], server.filters[:] = before[0], before[2]
    root.setLevel(before[1])


@pytest.mark.parametrize(
    "header", [b"Authorization: Bearer s3cret\x01", b"X: s3cret" + b"x" * 9000]
)
async def test_a_request_that_is_no_http_is_not_quoted(written: io.StringIO, header: bytes) -> None:
    async with TestServer(web.Application()) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n")
        assert b" 400 " in await reader.readline()
        writer.close()

    assert "s3cret" not in written.getvalue()


async def test_an_error_of_ours_is_written_with_its_trace(written: io.StringIO) -> None:
    async def fail(_request: web.Request) -> web.Response:
        raise RuntimeError("ours")

    app = web.Application()
    app.router.add_get("/", fail)
    async with TestServer(app) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 500 " in await reader.readline()
        writer.close()

    assert "RuntimeError: ours" in written.getvalue()
