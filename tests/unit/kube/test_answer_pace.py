"""A server that sends its answer in chunks of one byte is read at a bounded pace."""

from __future__ import annotations

import asyncio
from contextlib import aclosing as closed
from typing import Any, cast

import pytest

from vnode.api.token_bucket import TokenBucket
from vnode.kube.answer_heads import BoundedHeads
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.kube.sessions import Sessions

pytestmark = pytest.mark.looptime

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TINY = b"1\r\nx\r\n"


class FakeTransport(asyncio.Transport):
    """Notes whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = True

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.is_read = False


def connected(lines: TokenBucket) -> tuple[BoundedHeads, FakeTransport]:
    """Return a connection on which an answer has begun, and its transport."""
    transport = FakeTransport()
    protocol = BoundedHeads(asyncio.get_running_loop(), lines)
    protocol.connection_made(transport)
    protocol.set_response_params()
    protocol.data_received(HEAD)
    return protocol, transport


async def test_what_has_more_lines_than_an_honest_answer_waits_for_them() -> None:
    protocol, transport = connected(TokenBucket(rate=100, burst=1000))
    protocol.data_received(TINY * 400)
    assert transport.is_read

    protocol.data_received(TINY * 400)  # 600 lines too many, and those of the head
    assert not transport.is_read
    await asyncio.sleep(5.9)
    protocol.pause_reading()
    protocol.resume_reading()  # as when a reader has caught up
    assert not transport.is_read
    await asyncio.sleep(0.2)
    assert transport.is_read


async def test_who_reads_slowly_is_not_sent_more_because_the_lines_are_there() -> None:
    protocol, transport = connected(TokenBucket(rate=100, burst=10))
    protocol.data_received(TINY * 100)
    protocol.pause_reading()
    await asyncio.sleep(10)
    assert not transport.is_read

    protocol.resume_reading()
    assert transport.is_read


async def test_all_connections_to_a_server_have_their_lines_together() -> None:
    lines = TokenBucket(rate=100, burst=1000)
    first, _transport = connected(lines)
    first.data_received(TINY * 600)
    second, transport = connected(lines)
    second.data_received(TINY)
    assert not transport.is_read

    second.connection_lost(None)
    await asyncio.sleep(60)  # nothing is left that would touch it


async def test_the_sessions_of_a_client_have_their_lines_together_and_apart_from_others() -> None:
    where = Endpoint("http://127.0.0.1:1", None, Constant(None))
    async with closed(Sessions(where)) as one, closed(Sessions(where)) as other:
        sessions = one.short("/api"), one.short("/apis/coordination.k8s.io/v1/x"), one.long
        first, urgent, long, others = (
            cast("Any", each.connector)._factory() for each in (*sessions, other.long)
        )

    assert first._lines is urgent._lines is long._lines is not others._lines


async def test_a_large_chunk_costs_no_more_than_a_small_one() -> None:
    protocol, transport = connected(TokenBucket(rate=100, burst=1000))
    protocol.data_received(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
    assert transport.is_read or protocol._reading_paused
    assert protocol._held is None
