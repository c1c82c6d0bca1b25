"""The ports of several virtual nodes in one process, and the certificate that they show."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509

from tests.papers import Paper, paper
from vnode.kubelet.server import FIRST_PORT, KubeletServer
from vnode.runtime.certificates import Pair
from vnode.runtime.links import Health, Link, Links, TargetKey


class Served:
    """A server, and all that it asks about."""

    def __init__(self, folder: Path) -> None:
        # An address of our own, so that all ports are free.
        self.address = f"127.{os.getpid() % 200 + 20}.{os.urandom(1)[0]}.{os.urandom(1)[0]}"
        self.links = Links()
        self.recorded: dict[str, int] = {}
        self.shown = paper("first")
        self._changed = asyncio.Event()
        authorities = folder / "ca.crt"
        authorities.write_bytes(paper("clients", ca=True).pem)
        self.server = KubeletServer(
            self.links,
            SimpleNamespace(name="local"),
            address=self.address,
            certificate=lambda: Pair(self.shown.pem, self.shown.key_pem),
            find_pod=_nothing,
            recorded_ports=lambda: self.recorded,
            client_ca_file=authorities,
            grace=0,
        )
        self.server.subscribe(lambda _node: self._changed.set())

    def link(self, name: str) -> str:
        health = Health(True, "Ready", "", datetime.now(UTC))
        nothing = SimpleNamespace(synced=asyncio.Event())
        key = TargetKey("", name)
        self.links.add(Link(key, None, chaperons=nothing, summaries=nothing, health=health))
        return key.node_name

    async def port(self, node: str) -> int:
        async with asyncio.timeout(10):
            while (port := self.server.port_of(node)) is None:
                self._changed.clear()
                await self._changed.wait()

        return port

    async def connect(self, port: int):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return await asyncio.open_connection(self.address, port, ssl=context)

    async def shows(self, port: int) -> x509.Certificate:
        _reader, writer = await self.connect(port)
        encoded = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return x509.load_der_x509_certificate(encoded)


async def _nothing(_node: str, _namespace: str, _name: str) -> None:
    return None


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    made = Served(tmp_path)
    async with _running(made):
        yield made


@asynccontextmanager
async def _running(served: Served) -> AsyncIterator[None]:
    task = asyncio.create_task(served.server.run(), name="server")
    yield
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
    second = paper("second")
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
    served.shown = Paper(good.certificate, paper("other").key)
    served.server.renew()

    assert "goes on with its former certificate" in caplog.text
    assert await served.shows(port) == good.certificate
