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
    """Yield the log of a process that is configured as vnode's processes are."""
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


@pytest.mark.parametrize("style", ["text", "json"])
def test_words_of_others_make_no_line_and_command_no_terminal(style: str) -> None:
    formatter = logs.TextFormatter() if style == "text" else logs.JsonFormatter()
    record = logging.makeLogRecord({"msg": "said %s", "args": ("\x1b[2J\x9b2J\u202e\nWARNING x",)})
    with logs.context(target="\x1b]0;x\x07\ny"):
        line = formatter.format(record)

    assert "\n" not in line
    assert not set(line) & set("\x1b\x9b\x07\u202e")


def test_a_traceback_keeps_its_lines_but_commands_no_terminal() -> None:
    try:
        raise RuntimeError("\x1b[2J")
    except RuntimeError as error:
        record = logging.makeLogRecord({"msg": "x", "exc_info": (type(error), error, None)})

    written = logs.TextFormatter().format(record)
    assert "\x1b" not in written
    assert written.endswith("\nRuntimeError: \ufffd[2J")
