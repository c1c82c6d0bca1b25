"""Whatever trickles in byte by byte ends in time; what says nothing does, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from tests.unit.kube.raw_server import served_by
from vnode.api import kinds
from vnode.api.errors import Unreachable
from vnode.cli.doctor import examining
from vnode.kube import transport, websockets
from vnode.kube.client import Client
from vnode.kube.credentials import Cached
from vnode.kube.endpoint import Endpoint

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
ERROR = b"HTTP/1.1 403 Forbidden\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ENDED = r"slow: (timed out|the server sent more than 8 informational answers \(1xx\))"
SOON = 0.1  # seconds in place of 30: longer than any single pause of the server


@asynccontextmanager
async def dripping(head: bytes, drop: bytes = b" ") -> AsyncIterator[Client]:
    """Yield a client of a server that sends a head, and then drops without an end."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        with suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(0)

        writer.close()

    async with served_by(drip, "slow") as client:
        yield client


REQUESTS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "get": lambda client: client.get(kinds.PODS, "x", "default"),
    "list": lambda client: client.list(kinds.PODS),
    "create": lambda client: client.create(kinds.PODS, {"metadata": {}}, "default"),
    "text": lambda client: client.text("/metrics"),
}


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize(
    ("head", "drop"), [(OK, b" "), (ERROR, b" "), (b"", CONTINUE)], ids=["body", "error", "1xx"]
)
async def test_an_answer_that_trickles_in_ends(
    monkeypatch: pytest.MonkeyPatch, request_name: str, head: bytes, drop: bytes
) -> None:
    monkeypatch.setattr(transport, "_TIMEOUT", aiohttp.ClientTimeout(total=SOON))
    async with asyncio.timeout(20), dripping(head, drop) as client:
        with pytest.raises(Unreachable, match=ENDED):
            await REQUESTS[request_name](client)


@pytest.mark.parametrize(("head", "drop"), [(ERROR, b" "), (b"", CONTINUE)], ids=["error", "1xx"])
async def test_a_stream_that_does_not_begin_ends(head: bytes, drop: bytes) -> None:
    """As of a watch, or a log: each byte counts as a sign of life, so silence is not enough."""
    async with asyncio.timeout(20), dripping(head, drop) as client:
        with pytest.raises(Unreachable, match=ENDED):
            async with client.stream("GET", "/", query={}, silence=None, opening=SOON):
                pass


async def test_a_websocket_that_does_not_open_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websockets, "OPENING", SOON)
    async with asyncio.timeout(20), dripping(b"", CONTINUE) as client:
        with pytest.raises(Unreachable, match=ENDED):
            async with websockets.connect(client, "/exec", [], "v4.channel.k8s.io"):
                pass


async def test_the_version_that_doctor_asks_for_is_there_in_time_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(examining, "_TIMEOUT", SOON)
    async with asyncio.timeout(20), dripping(OK) as client:
        with pytest.raises(Unreachable, match=ENDED):
            await examining.read_version(client)


class Hanging(Cached):
    """As an exec plugin that hangs."""

    async def _fetch(self) -> tuple[str | None, float]:
        return await asyncio.get_running_loop().create_future()


@pytest.mark.looptime
async def test_credentials_that_do_not_come_are_no_answer() -> None:
    """Whoever waits for the first who asked does so no longer than that one."""
    client = Client(Endpoint("https://c1.invalid", None, Hanging()), name="slow")
    asking = [client.authorization(), client._authorize({}), client.authorization()]
    for error in await asyncio.gather(*asking, return_exceptions=True):
        assert isinstance(error, Unreachable)
        assert str(error) == "slow: timed out"

    assert asyncio.get_running_loop().time() == pytest.approx(90, abs=1)
