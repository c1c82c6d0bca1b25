"""The ports of several virtual nodes in one process, and the certificate that they show."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web
from cryptography import x509

from tests import answering, certificates, virtual_nodes
from tests.certificates import KeyAndCertificate, issue
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.namespace_scope import EVERYTHING
from vnode.kube.store import Store
from vnode.kubelet import server as kubelet_server
from vnode.kubelet.server import FIRST_PORT, KubeletServer
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.link import PARENT_UID_INDEX, Link
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links


class Served:
    """A server, and all that it asks about."""

    def __init__(self, folder: Path, *, grace: float = 0, last_grace: float | None = None) -> None:
        # An address of our own, so that all ports are free.
        self.address = f"127.{os.getpid() % 200 + 20}.{os.urandom(1)[0]}.{os.urandom(1)[0]}"
        self.links = Links()
        self.recorded: dict[str, int] = {}
        self.shown = issue("first")
        self._changed = asyncio.Event()
        authorities = folder / "ca.crt"
        authorities.write_bytes(issue("clients", ca=True).pem)
        self.server = KubeletServer(
            self.links,
            SimpleNamespace(name="local", scope=EVERYTHING),
            address=self.address,
            certificate=lambda: Pair(self.shown.pem, self.shown.key_pem),
            find_pod=virtual_nodes.find,
            recorded_ports=lambda: self.recorded,
            client_ca_file=authorities,
            grace=grace,
            last_grace=None if last_grace is None else lambda: last_grace,
        )
        self.server.subscribe(lambda _node: self._changed.set())

    def link(self, name: str) -> str:
        return self.connect_to(TargetKey("", name), None)

    def connect_to(self, key: TargetKey, client: Client | None) -> str:
        """Return a link to a target that has the chaperon of the one pod."""
        health = LinkHealth(True, "Ready", "", datetime.now(UTC))
        store = Store({PARENT_UID_INDEX: lambda _chaperon: "u"})
        store.put(virtual_nodes.CHAPERON)
        informer = SimpleNamespace(synced=asyncio.Event(), store=store)
        self.links.add(Link(key, client, chaperons=informer, summaries=informer, health=health))
        return key.node_name

    async def port(self, node: str) -> int:
        async with asyncio.timeout(10):
            while (port := self.server.port_of(node)) is None:
                self._changed.clear()
                await self._changed.wait()

        return port

    async def connect(self, port: int):
        context = certificates.unverified()
        return await asyncio.open_connection(self.address, port, ssl=context)

    async def refused(self, port: int) -> None:
        """Wait until nobody listens there any more."""
        while True:
            try:
                _reader, writer = await asyncio.open_connection(self.address, port)
            except ConnectionError:
                return

            writer.transport.abort()

    async def shows(self, port: int) -> x509.Certificate:
        _reader, writer = await self.connect(port)
        encoded = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return x509.load_der_x509_certificate(encoded)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    made = Served(tmp_path)
    async with _running(made):
        yield made


@asynccontextmanager
async def _running(served: Served) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(served.server.run(), name="server")
    yield task
    task.cancel()
    await asyncio.wait([task])


async def test_each_node_has_a_port_of_its_own(served: Served):
    nodes = [served.link(name) for name in ("a", "b", "c")]

    assert [await served.port(node) for node in nodes] == [FIRST_PORT + n for n in range(3)]


async def test_nodes_get_the_ports_that_they_had(served: Served):
    served.recorded = {"admiralty-a": FIRST_PORT + 7, "admiralty-b": FIRST_PORT}

    assert await served.port(served.link("a")) == FIRST_PORT + 7
    assert await served.port(served.link("b")) == FIRST_PORT


async def test_a_node_whose_link_comes_first_does_not_get_the_port_of_another(served: Served):
    served.recorded = {"admiralty-late": FIRST_PORT}

    assert await served.port(served.link("early")) == FIRST_PORT + 1
    assert await served.port(served.link("late")) == FIRST_PORT


async def test_a_port_that_is_taken_here_is_replaced(served: Served):
    served.recorded = {"admiralty-a": FIRST_PORT + 3, "admiralty-b": FIRST_PORT + 4}
    with socket.create_server((served.address, FIRST_PORT + 3)):
        assert await served.port(served.link("a")) == FIRST_PORT
        assert await served.port(served.link("b")) == FIRST_PORT + 4


async def test_a_new_certificate_is_shown_on_new_connections_and_old_ones_go_on(served: Served):
    port = await served.port(served.link("a"))
    second = issue("second")
    reader, writer = await served.connect(port)

    served.shown = second
    served.server.renew()

    assert await served.shows(port) == second.certificate
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
    writer.close()


async def test_a_certificate_that_cannot_be_used_leaves_the_former_one(served: Served, caplog):
    port = await served.port(served.link("a"))
    good = served.shown
    served.shown = KeyAndCertificate(good.certificate, issue("other").key)
    served.server.renew()

    assert "keeps its former certificate" in caplog.text
    assert await served.shows(port) == good.certificate


@pytest.mark.parametrize("last", [60.0, 0.0])
async def test_open_streams_get_the_last_grace_when_the_server_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: float
):
    monkeypatch.setattr(kubelet_server, "Gate", lambda *_: virtual_nodes.Open())
    more = asyncio.Event()

    async def follow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(b"one\n")
        await more.wait()
        await response.write(b"two\n")
        return response

    made = Served(tmp_path, grace=60.0 - last, last_grace=last)
    async with (
        answering.client(follow, "c2") as target,
        _running(made) as serving,
        asyncio.timeout(20),
    ):
        port = await made.port(made.connect_to(virtual_nodes.TARGET, target))
        reader, writer = await made.connect(port)
        writer.write(b"GET /containerLogs/default/web/main?follow=true HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"one\n")

        serving.cancel()
        if last:
            await made.refused(port)
            assert not serving.done()
            more.set()
            await reader.readuntil(b"two\n")

        await asyncio.wait([serving])
        assert b"two" not in await reader.read()
        more.set()
        writer.close()
