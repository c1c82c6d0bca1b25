"""What a server, or a kubeconfig, has TLS compute is bounded; so are records of TLS."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests import computing
from tests import hostile_certificates as hostile
from vnode.api.errors import ConfigError, Unreachable
from vnode.kube import endpoint, key_bounds, tls, tls_records
from vnode.kube.client import Client
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.kube.kubeconfig import Kubeconfig
from vnode.kube.tls_records import BoundedRecords, RecordBudget

P256 = ec.generate_private_key(ec.SECP256R1())
PLAIN = hostile.long_chain(P256, 1)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
AT_ONCE = 0.05  # seconds of a processor


def server(chain: list[x509.Certificate] = PLAIN, key: Any = P256) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    hostile.show(context, chain, key)
    return context


@contextmanager
def served(context: ssl.SSLContext) -> Iterator[str]:
    """Yield the URL of a server in a thread, which answers one request on each connection."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                bare, _address = listening.accept()
            except OSError:
                return

            with suppress(OSError), bare, context.wrap_socket(bare, server_side=True) as secured:
                secured.recv(4096)
                secured.sendall(ANSWER)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


async def longest_of(client: Client, requests: int = 1) -> tuple[float, list[BaseException | None]]:
    """Return the longest that the event loop computes at once while requests are sent."""
    longest, is_over = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not is_over:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    watching = asyncio.create_task(watch(), name="watch")
    outcomes: list[BaseException | None] = []
    with computing.uncollected():
        for _ in range(requests):
            try:
                await client.request("GET", "/readyz")
                outcomes.append(None)
            except Unreachable as error:
                outcomes.append(error)

        is_over = True
        await watching

    return longest, outcomes


def client_of(url: str, context: ssl.SSLContext) -> Client:
    where = Endpoint(url, context, Constant(None), server_name="localhost")
    return Client(where, name="hostile")


async def test_an_honest_handshake_succeeds() -> None:
    with served(server()) as url:
        async with client_of(url, tls.create(hostile.pem(PLAIN), insecure=False)) as client:
            _longest, outcomes = await longest_of(client, requests=3)

    assert outcomes == [None, None, None]


def with_a_modulus_of_its_own(tmp_path: Path) -> ssl.SSLContext:
    """Return a server that has clients compute with a number of 10,000 bits."""
    context = server()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DHE:@SECLEVEL=0")
    prime = hostile._der(2, b"\0" + ((1 << 9999) | 1 << 64 | 1).to_bytes(1250, "big"))
    encoded = base64.encodebytes(hostile._der(0x30, prime, hostile._integer(2))).decode()
    file = tmp_path / "dh.pem"
    file.write_text(f"-----BEGIN DH PARAMETERS-----\n{encoded}-----END DH PARAMETERS-----\n")
    context.load_dh_params(str(file))
    return context


async def test_no_server_has_the_loop_compute_with_a_modulus_of_its_own(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    plain = hostile.long_chain(key, 1)
    context = with_a_modulus_of_its_own(tmp_path)
    hostile.show(context, plain, key)
    with served(context) as url:
        async with client_of(url, tls.create(hostile.pem(plain), insecure=False)) as client:
            longest, outcomes = await longest_of(client)

    assert longest < AT_ONCE
    assert outcomes != [None]


def test_no_server_chooses_the_numbers_of_a_handshake_or_begins_another() -> None:
    context = tls.create(None, insecure=False)

    assert all(cipher["kea"] in ("kx-ecdhe", "kx-any") for cipher in context.get_ciphers())
    assert context.options & ssl.OP_NO_RENEGOTIATION


def kubeconfig(**user: bytes) -> Kubeconfig:
    encoded = {
        field.replace("_", "-") + "-data": base64.b64encode(value).decode()
        for field, value in user.items()
    }
    return Kubeconfig.parse(
        json.dumps(
            {
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{"name": "a", "cluster": {"server": "https://localhost:1"}}],
                "users": [{"name": "a", "user": encoded}],
            }
        )
    )


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: hostile.made_up_rsa(16384), id="16384 bits"),
        pytest.param(lambda: hostile.made_up_rsa(4096, first=64), id="a long factor"),
        pytest.param(hostile.slow_key, id="a public exponent of 3070 bits"),
    ],
)
def test_a_client_key_that_takes_long_to_sign_with_is_refused(make: Callable[[], Any]) -> None:
    key = make()
    shown = hostile.pem([hostile.certificate("me", "me", key, P256)])
    asked = kubeconfig(client_certificate=shown, client_key=hostile.key_pem(key))
    with computing.within(2 * AT_ONCE), pytest.raises(ConfigError, match="client-"):
        endpoint.from_kubeconfig(asked)


@pytest.mark.parametrize(
    "key",
    [P256, ec.generate_private_key(ec.SECP521R1()), rsa.generate_private_key(65537, 2048)],
    ids=["P-256", "P-521", "RSA"],
)
def test_a_usual_client_key_is_used(key: Any) -> None:
    shown = hostile.pem([hostile.certificate("me", "me", key, key)])

    assert endpoint.from_kubeconfig(
        kubeconfig(client_certificate=shown, client_key=hostile.key_pem(key))
    ).ssl


def test_a_certificate_on_a_curve_of_its_own_is_refused_before_openssl_sees_it() -> None:
    encoded = base64.encodebytes(hostile.on_a_curve_of_ones_own())
    text = b"-----BEGIN CERTIFICATE-----\n" + encoded + b"-----END CERTIFICATE-----\n"
    authority = "certificate-authority has a certificate that is not"
    client = "client-certificate has a certificate that is not used"
    with computing.within(AT_ONCE):
        with pytest.raises(ConfigError, match=authority):
            key_bounds.authorities(text)

        with pytest.raises(ConfigError, match=client):
            key_bounds.client_pair(text, hostile.key_pem(P256))


class Reading(asyncio.Transport):
    """A transport of TLS: reads what has arrived whenever it resumes, as asyncio's does."""

    def __init__(self, records: BoundedRecords) -> None:
        super().__init__()
        self._records = records
        self.got = 0
        self._ssl_protocol: Any = None  # as asyncio's transport of TLS has it
        self.failure: ssl.SSLError | None = None

    def is_closing(self) -> bool:
        return self.failure is not None

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        self.read()

    def read(self) -> None:
        """Read until there is nothing more for now."""
        try:
            while True:
                self.got += len(self._records.read(256 * 1024))
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.failure = error


class Futile:
    """Stands for TLS that is sent changes of keys: it takes all that it is fed."""

    def __init__(self, fed: ssl.MemoryBIO) -> None:
        self._fed = fed
        self.most = 0  # bytes at once

    def read(self, _size: int, _buffer: Any = None) -> bytes:
        self.most = max(self.most, self._fed.pending)
        self._fed.read()
        raise ssl.SSLWantReadError


class Connected:
    """A client's side of a connection, which is read, and the server's, which sends."""

    def __init__(self, peer: str) -> None:
        self._there, self._back, fed, self._arrived = (ssl.MemoryBIO() for _ in range(4))
        self.serving = server().wrap_bio(self._there, self._back, server_side=True)
        trusting = tls.create(None, insecure=True)
        secured = trusting.wrap_bio(fed, self._there, server_hostname="x")
        records = BoundedRecords(secured, fed, self._arrived)
        for _ in range(3):
            for side in (records, self.serving):
                with suppress(ssl.SSLWantReadError):
                    side.do_handshake()

            self._arrived.write(self._back.read())

        self.transport = Reading(records)
        records.keep_pace(self.transport, RecordBudget(), peer)

    def send(self, *records: bytes) -> None:
        """Send each of them as a record."""
        for content in records:
            self.serving.write(content)

    def receive(self, most: int = -1) -> bool:
        """Read so many bytes of the wire; tell whether there were any."""
        arrived = self._back.read(most)
        self._arrived.write(arrived)
        self.transport.read()
        return bool(arrived)


@pytest.mark.looptime
async def test_records_of_one_byte_and_key_updates_have_a_pace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connected = Connected("hostile")
    transport = connected.transport
    connected.send(*[b"x"] * 20_000)
    connected.receive()
    assert transport.got <= 2 * tls_records._RECORDS  # at once

    await asyncio.sleep(0.001)  # the time of this loop passes only while nothing is to be done
    at_once = tls_records.AT_ONCE // 22
    assert at_once <= transport.got < at_once + 500
    await asyncio.sleep(2)
    assert transport.got < at_once + 2.2 * tls_records.PER_SECOND / 22
    await asyncio.sleep(30)
    assert transport.got == 20_000
    assert transport.failure is None

    fed, arrived = ssl.MemoryBIO(), ssl.MemoryBIO()
    futile = Futile(fed)
    records = BoundedRecords(futile, fed, arrived)
    transport = Reading(records)
    records.keep_pace(transport, RecordBudget(), "hostile")
    update = b"\x17\x03\x03\x00\x16" + b"u" * 22
    with caplog.at_level(logging.WARNING):
        for _ in range(60):
            arrived.write(update * 2000)
            transport.read()
            await asyncio.sleep(2)

    assert futile.most <= tls_records._RECORDS * len(update)
    assert transport.failure is not None
    assert "hostile sends next to nothing but TLS records" in caplog.text


@pytest.mark.looptime
async def test_full_records_wait_for_nothing() -> None:
    connected = Connected("honest")
    sizes = [*range(1200, 16_384, 1200), *[16_384] * 1000]
    connected.send(*(b"x" * size for size in sizes))
    while connected.receive(100_000):
        pass

    assert connected.transport.got == sum(sizes)


@pytest.mark.looptime
async def test_what_came_before_the_end_is_read_though_it_would_have_to_wait() -> None:
    connected = Connected("honest")
    connected.send(*[b"x" * 50] * 600)
    connected.receive()
    assert connected.transport.got < 600 * 50
    connected.transport._ssl_protocol = type("Ended", (), {"_eof_received": True})
    connected.receive()

    assert connected.transport.got == 600 * 50
