"""All sources come from the address of a target's API server: none pays for another's records."""

from __future__ import annotations

import asyncio

import aiohttp

from tests import certificates
from tests.unit.pods.stream_pair import SECRET, StreamPair
from tests.unit.runtime.served_port import running
from vnode.kube import tls_records
from vnode.pods import stream_messages
from vnode.pods.stream_messages import Hello
from vnode.pods.target.stream_server import StreamPages
from vnode.runtime.certs import contexts
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.serving import Server


async def test_small_records_of_one_source_keep_no_other_waiting(clock, monkeypatch):
    monkeypatch.setattr(tls_records, "AT_ONCE", 20_000)
    monkeypatch.setattr(tls_records, "PER_SECOND", 1)
    pair = StreamPair(clock)
    pair.candidate("ours")
    pair.candidate("theirs", digest=stream_messages.digest("of c9"))
    pages, shown = StreamPages(pair.streams, "r1"), certificates.issue("server")
    made = Pair(shown.pem, shown.key_pem)
    context = await asyncio.to_thread(contexts.server_context, made)
    server = Server("streams", pages.app(), "127.0.0.1", 0, ssl_context=context)
    pages.on_known = server.connections.on_authorized
    connector = aiohttp.TCPConnector(ssl=certificates.unverified())
    async with (
        asyncio.timeout(8),
        pair.cluster.informed(),
        running(server),
        aiohttp.ClientSession(f"https://127.0.0.1:{server.port}", connector=connector) as session,
        session.ws_connect(stream_messages.PATH) as hostile,
        session.ws_connect(stream_messages.PATH, autoping=False) as honest,
    ):
        await hostile.send_str(stream_messages.encode(Hello("of c9")))
        assert (await hostile.receive()).type is aiohttp.WSMsgType.TEXT
        wire = hostile._writer.transport
        wire.write(b"\x81\xfe" + (8000).to_bytes(2, "big") + b"mask")
        for _ in range(3000):
            wire.write(b"x")

        await asyncio.sleep(0.5)
        await honest.send_str(stream_messages.encode(Hello(SECRET)))
        assert (await honest.receive()).type is aiohttp.WSMsgType.TEXT
        for _ in range(3):
            await honest.ping()
            assert (await honest.receive()).type is aiohttp.WSMsgType.PONG

        wire.abort()
