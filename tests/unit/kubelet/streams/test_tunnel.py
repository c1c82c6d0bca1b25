"""Two real connections over loopback TLS, joined: what arrives, what stops, what ends."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trustme

from vnode.kubelet.streams import sockets
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.pace import Pace
from vnode.kubelet.streams.tunnel import Tunnel
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.keypairs import Pair

MEGABYTE = 1024 * 1024


@dataclass
class Joined:
    """The outer ends of a tunnel: (reader, writer) of the client and of the target."""

    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    target: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    tunnel: Tunnel


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext, ssl.SSLContext]:
    """Return TLS contexts: of a virtual node's port, of the target, and of clients of either."""
    authority = trustme.CA()
    made = authority.issue_cert("localhost")
    chain = b"".join(pem.bytes() for pem in made.cert_chain_pems)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return AskingContext(Pair(chain, made.private_key_pem.bytes())), server, client


@asynccontextmanager
async def joined(*, tls: bool = True, pace: Pace = lambda _size: 0.0) -> AsyncIterator[Joined]:
    """Yield a tunnel as the server has it: an accepted connection, and one made to the target."""
    asking, server, client = contexts() if tls else (None, None, None)
    loop = asyncio.get_running_loop()
    accepted: asyncio.Queue[asyncio.Transport] = asyncio.Queue()
    reached: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    class Accept(asyncio.Protocol):
        def connection_made(self, transport):
            accepted.put_nowait(transport)

    front = await loop.create_server(Accept, "127.0.0.1", 0, ssl=asking)
    back = await asyncio.start_server(
        lambda *streams: reached.put_nowait(streams), "127.0.0.1", 0, ssl=server
    )
    name = "localhost" if tls else None
    outer = await asyncio.open_connection(
        "127.0.0.1", front.sockets[0].getsockname()[1], ssl=client, server_hostname=name
    )
    inner, _protocol = await loop.create_connection(
        asyncio.Protocol,
        "127.0.0.1",
        back.sockets[0].getsockname()[1],
        ssl=client,
        server_hostname=name,
    )
    disconnects = DisconnectWatch()
    tunnel = Tunnel(await accepted.get(), inner, disconnects, pace)
    tunnel.start()
    target = await reached.get()
    try:
        yield Joined(outer, target, tunnel)
    finally:
        for _reader, writer in (outer, target):
            writer.transport.abort()

        async with asyncio.timeout(5):
            await tunnel.closed.wait()

        disconnects.close()
        front.close()
        back.close()
        await asyncio.sleep(0.01)  # transports call back once more after they are aborted


async def test_bytes_arrive_both_ways():
    async with joined() as ends:
        ends.client[1].write(b"question")
        assert await ends.target[0].readexactly(8) == b"question"

        ends.target[1].write(b"answer")
        assert await ends.client[0].readexactly(6) == b"answer"


async def test_a_lot_of_bytes_arrive_unchanged():
    content = bytes(range(256)) * 4096 * 8
    async with joined() as ends, asyncio.TaskGroup() as group:
        group.create_task(_send(ends.client[1], content))
        received = await ends.target[0].readexactly(len(content))

        assert received == content


async def test_what_is_read_slowly_arrives_unchanged():
    content, waits = bytes(range(256)) * 4096 * 2, []

    def pace(size):
        waits.append(size * 0.2 / len(content))
        return waits[-1]

    async with joined(pace=pace) as ends, asyncio.TaskGroup() as group:
        group.create_task(_send(ends.client[1], content))
        begun = time.monotonic()
        assert await ends.target[0].readexactly(len(content)) == content
        assert time.monotonic() - begun > sum(waits[:-1])


async def test_a_client_that_leaves_while_it_is_read_slowly_ends_the_target():
    async with joined(pace=lambda _size: 0.01) as ends, asyncio.timeout(60):
        ends.client[1].write(b"x" * MEGABYTE)
        ends.client[1].close()

        await ends.target[0].read()
        await ends.tunnel.closed.wait()


async def _send(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(content)
    await writer.drain()


async def test_a_target_that_ends_ends_the_client_after_all_its_bytes():
    async with joined() as ends:
        ends.target[1].write(b"x" * MEGABYTE)
        ends.target[1].close()

        assert len(await ends.client[0].read()) == MEGABYTE


async def test_a_slow_client_gets_everything_that_the_target_sent_before_it_ended():
    async with joined() as ends:
        sending = asyncio.create_task(_send(ends.target[1], b"x" * 8 * MEGABYTE))
        await asyncio.sleep(0.2)  # both buffers are full, nobody reads
        reading = asyncio.create_task(ends.client[0].read())
        await sending
        ends.target[1].close()

        assert len(await reading) == 8 * MEGABYTE


async def test_a_client_that_leaves_ends_the_target():
    async with joined() as ends, asyncio.timeout(5):
        ends.client[1].close()

        assert await ends.target[0].read() == b""
        await ends.tunnel.closed.wait()


async def test_memory_stays_flat_when_the_target_reads_nothing():
    async with joined() as ends:
        sent = await _fill(ends.client[1])

        assert sent < 24 * MEGABYTE, "socket buffers and ours, but not more and more"


async def _fill(writer: asyncio.StreamWriter) -> int:
    """Write until nothing moves for a while; how much went."""
    sent = 0
    try:
        while True:
            writer.write(b"x" * MEGABYTE)
            async with asyncio.timeout(0.5):
                await writer.drain()

            sent += MEGABYTE
            if sent > 64 * MEGABYTE:
                return sent
    except TimeoutError:
        return sent


async def test_a_client_that_leaves_is_noticed_though_the_target_takes_no_input():
    async with joined() as ends:
        while ends.tunnel.client.transport.is_reading():
            ends.client[1].write(b"x" * 64 * 1024)
            await asyncio.sleep(0)

        ends.client[1].transport.abort()

        async with asyncio.timeout(5):
            await ends.tunnel.closed.wait()


async def test_input_flows_again_after_a_pause():
    async with joined() as ends:
        sent = await _fill(ends.client[1])

        async with asyncio.timeout(10):
            await ends.target[0].readexactly(sent)


async def test_plain_tcp_passes_a_half_close_on_and_keeps_the_other_direction():
    async with joined(tls=False) as ends, asyncio.timeout(5):
        ends.client[1].write(b"all of it")
        ends.client[1].write_eof()
        assert await ends.target[0].read() == b"all of it"

        ends.target[1].write(b"result")
        ends.target[1].close()
        assert await ends.client[0].read() == b"result"


async def test_closing_ends_both():
    async with joined() as ends, asyncio.timeout(5):
        ends.tunnel.close()

        assert await ends.client[0].read() == b""
        assert await ends.target[0].read() == b""


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="an option of Linux")
async def test_silent_connections_are_probed():
    async with joined() as ends:
        sockets.keep_alive(ends.tunnel.client.transport)

        connection = ends.tunnel.client.transport.get_extra_info("socket")
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


@pytest.mark.looptime
async def test_silence_of_hours_ends_nothing():
    """In virtual time: whatever timer of ours were shorter would go off."""
    async with joined() as ends:
        for end, other in ((ends.client, ends.target), (ends.target, ends.client)):
            await asyncio.sleep(5 * 3600)
            end[1].write(b"still here")
            assert await other[0].readexactly(10) == b"still here"
