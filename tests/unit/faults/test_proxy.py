"""A fault proxy passes requests on, and fails as it is told to, before a server that counts."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from hack.fleetlib import certificates
from tests.faults.fault_profile import FaultProfile
from tests.faults.proxy import FaultProxy, ProxiedServer

HOST = "127.0.0.1"


@dataclass
class Server:
    """Echoes what is posted; a watch sends one line for each `event`."""

    posted: list[bytes] = field(default_factory=list)
    events: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/things", self.post)
        app.router.add_get("/things", self.get)
        return app

    async def post(self, request: web.Request) -> web.Response:
        self.posted.append(await request.read())
        return web.Response(body=self.posted[-1])

    async def get(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(text="things")

        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(await self.events.get())


@pytest.fixture
def pki(tmp_path: Path) -> Path:
    authority = certificates.authority("test")
    certificates.write_pair(tmp_path, "ca", authority.pair)
    certificates.write_pair(tmp_path, "server", authority.server("server", [HOST]))
    return tmp_path


@pytest.fixture
async def server(pki: Path) -> AsyncIterator[tuple[Server, int]]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / "server.crt", pki / "server.key")
    counting = Server()
    runner = web.AppRunner(counting.app(), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0, ssl_context=context)
    await site.start()
    yield counting, runner.addresses[0][1]
    await runner.cleanup()


@pytest.fixture
async def fault_proxy(
    server: tuple[Server, int], pki: Path
) -> AsyncIterator[tuple[FaultProxy, str]]:
    fault_proxy = FaultProxy("a>b", ProxiedServer(HOST, server[1], pki), random.Random(1))
    url = await fault_proxy.start(HOST)
    yield fault_proxy, f"{url}/things"
    await fault_proxy.close()


@pytest.fixture
async def client(pki: Path) -> AsyncIterator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cafile=pki / "ca.crt")
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session


async def test_requests_and_answers_pass_one_after_the_other(
    server: tuple[Server, int], fault_proxy: tuple[FaultProxy, str], client: aiohttp.ClientSession
) -> None:
    for body in (b"", b"small", b"x" * 300_000):
        async with client.post(fault_proxy[1], data=body) as response:
            assert await response.read() == body

    async def pieces() -> AsyncIterator[bytes]:
        yield b"in "
        yield b"pieces"

    async with client.post(fault_proxy[1], data=pieces()) as response:
        assert await response.read() == b"in pieces"

    assert len(server[0].posted) == 4


async def test_an_error_is_answered_and_nothing_is_done(
    server: tuple[Server, int], fault_proxy: tuple[FaultProxy, str], client: aiohttp.ClientSession
) -> None:
    fault_proxy[0].profile = FaultProfile(errors={429: 1.0})
    async with client.post(fault_proxy[1], data=b"a") as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "1")

    fault_proxy[0].heal()
    async with client.post(fault_proxy[1], data=b"b") as response:
        assert response.status == 200

    assert server[0].posted == [b"b"]
    assert fault_proxy[0].counts == {"requests": 2, "429": 1}


async def test_a_lost_answer_is_that_of_something_done(
    server: tuple[Server, int], fault_proxy: tuple[FaultProxy, str], client: aiohttp.ClientSession
) -> None:
    fault_proxy[0].profile = FaultProfile(lost=1.0)
    with pytest.raises(aiohttp.ClientError):
        await client.post(fault_proxy[1], data=b"a")

    assert server[0].posted == [b"a"]


async def test_what_is_frozen_goes_on_where_it_stood(
    server: tuple[Server, int], fault_proxy: tuple[FaultProxy, str], client: aiohttp.ClientSession
) -> None:
    async with client.get(fault_proxy[1]):
        pass

    fault_proxy[0].freeze()
    asking = asyncio.ensure_future(client.get(fault_proxy[1]))
    done, _ = await asyncio.wait([asking], timeout=0.2)
    assert not done
    fault_proxy[0].heal()
    async with asyncio.timeout(10), await asking as response:
        assert await response.text() == "things"


async def test_stalled_watches_hold_events_while_other_requests_pass(
    server: tuple[Server, int], fault_proxy: tuple[FaultProxy, str], client: aiohttp.ClientSession
) -> None:
    async with client.get(f"{fault_proxy[1]}?watch=1") as watch:
        server[0].events.put_nowait(b"first")
        assert await watch.content.readany() == b"first"
        fault_proxy[0].freeze_watches()
        server[0].events.put_nowait(b"second")
        async with client.get(fault_proxy[1]) as response:
            assert response.status == 200

        reading = asyncio.ensure_future(watch.content.readany())
        done, _ = await asyncio.wait([reading], timeout=0.2)
        assert not done
        fault_proxy[0].heal()
        async with asyncio.timeout(10):
            assert await reading == b"second"


async def test_a_reset_and_a_cut_end_connections(
    server: tuple[Server, int], fault_proxy: tuple[FaultProxy, str], client: aiohttp.ClientSession
) -> None:
    async with client.get(f"{fault_proxy[1]}?watch=1") as watch:
        server[0].events.put_nowait(b"first")
        await watch.content.readany()
        fault_proxy[0].reset()
        with pytest.raises(aiohttp.ClientError):
            await watch.content.readany()

    fault_proxy[0].refusing = True
    with pytest.raises(aiohttp.ClientError):
        await client.get(fault_proxy[1])

    fault_proxy[0].heal()
    async with client.get(fault_proxy[1]) as response:
        assert response.status == 200
