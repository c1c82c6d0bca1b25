"""A proxy between one agent and one API server, which can do to it what networks do.

It ends TLS with a certificate of the cluster's own authority, so it sees requests, and opens a
connection to the API server for each that it gets. Agents show tokens, which pass as they are.
Requests are read one by one; answers are copied as they come, watches and upgrades too.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hack.fleetlib.certificates import CertificateAuthority, CertificatePair
from tests.faults import fault_profile
from tests.faults.fault_profile import CLEAR, Fate, FaultProfile

_HEAD = 1 << 20  # bytes that a request's head may have
_PIECE = 1 << 16
_BROKEN = (OSError, asyncio.IncompleteReadError, ValueError, asyncio.LimitOverrunError)


def showing(pair: CertificatePair) -> ssl.SSLContext:
    """Make the context of a server that shows that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate_pem + pair.key_pem)
        file.flush()
        context.load_cert_chain(file.name)

    return context


@dataclass(frozen=True, slots=True)
class ProxiedServer:
    """An API server, and how to be it: `pki` is the folder with its cluster's authority."""

    host: str
    port: int
    pki: Path

    def serving(self, host: str) -> ssl.SSLContext:
        """Return a context that shows a certificate for `host`."""
        certificate = x509.load_pem_x509_certificate((self.pki / "ca.crt").read_bytes())
        key = serialization.load_pem_private_key((self.pki / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return showing(
            CertificateAuthority(CertificatePair(certificate, key)).server("fault_proxy", [host])
        )

    def calling(self) -> ssl.SSLContext:
        """Return a context that trusts the API server, and nobody else."""
        return ssl.create_default_context(cafile=self.pki / "ca.crt")


class FaultProxy:
    """Listens once started; faults take effect at once, on connections that are open too."""

    def __init__(self, name: str, upstream: ProxiedServer, dice: random.Random) -> None:
        self.name = name
        self.profile: FaultProfile = CLEAR
        self.refusing = False  # connections end as soon as they begin
        self.counts: Counter[str] = Counter()  # requests, and what was done to them
        self._upstream = upstream
        self._dice = dice
        self._open = asyncio.Event()  # cleared: nothing passes, and nothing says why
        self._watches = asyncio.Event()  # cleared: no event of a watch passes
        self._open.set()
        self._watches.set()
        self._passages: set[_Passage] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # one for each connection
        self._server: asyncio.Server | None = None

    async def start(self, host: str) -> str:
        """Listen on a free port of `host`; returns the URL."""
        self._server = await asyncio.start_server(
            self._serve, host, 0, ssl=self._upstream.serving(host), limit=_HEAD
        )
        return f"https://{host}:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Listen no more, and end what is open."""
        assert self._server is not None, "not started"
        self._server.close()
        self.heal()
        self.refusing = True
        while self._tasks:
            self.reset()
            await asyncio.wait(self._tasks, timeout=0.1)

    def freeze(self, yes: bool = True) -> None:
        """Let nothing pass, as a cable that is pulled."""
        _block(self._open, yes)

    def freeze_watches(self, yes: bool = True) -> None:
        """Let no event of a watch pass, while all else does."""
        _block(self._watches, yes)

    def reset(self) -> None:
        """End all connections with a TCP reset."""
        for passage in list(self._passages):
            passage.abort()

    def heal(self) -> None:
        """Undo everything. What was frozen goes on where it stood."""
        self.profile, self.refusing = CLEAR, False
        self.freeze(False)
        self.freeze_watches(False)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "called by the server"
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.refusing:
            writer.transport.abort()
            return

        there = self._upstream
        try:
            await self._open.wait()
            upper = await asyncio.open_connection(
                there.host, there.port, ssl=there.calling(), limit=_HEAD
            )
        except OSError:
            writer.transport.abort()
            return

        passage = _Passage(self, reader, writer, *upper)
        self._passages.add(passage)
        try:
            await passage.run()
        finally:
            self._passages.discard(passage)

    async def passable(self, is_watch: bool) -> None:
        """Return when a piece of an answer may pass."""
        if self.profile.delay:
            await asyncio.sleep(self.profile.delay)

        await self._open.wait()
        if is_watch:
            await self._watches.wait()
            await self._open.wait()

    def fate(self, request: fault_profile.RequestHead) -> Fate | int:
        """Decide about a request, and count it."""
        fate = self.profile.fate(request, self._dice)
        self.counts["requests"] += 1
        if fate is not Fate.PASS:
            self.counts[str(fate) if isinstance(fate, int) else "lost"] += 1

        return fate


def _block(gate: asyncio.Event, yes: bool) -> None:
    if yes:
        gate.clear()
    else:
        gate.set()


class _Passage:
    """One connection of the agent, with one of ours to the API server."""

    def __init__(
        self,
        fault_proxy: FaultProxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        upper_reader: asyncio.StreamReader,
        upper_writer: asyncio.StreamWriter,
    ) -> None:
        self._fault_proxy = fault_proxy
        self._reader, self._writer = reader, writer
        self._upper_reader, self._upper_writer = upper_reader, upper_writer
        self._is_watch = False
        self._is_lost = False  # the answer that comes next is not to arrive

    def abort(self) -> None:
        self._writer.transport.abort()
        self._upper_writer.transport.abort()

    async def run(self) -> None:
        """Copy both ways until one side ends."""
        tasks = [
            asyncio.create_task(self._up(), name=f"{self._fault_proxy.name} up"),
            asyncio.create_task(self._down(), name=f"{self._fault_proxy.name} down"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

            await asyncio.wait(tasks)
            self._writer.close()
            self._upper_writer.close()

    async def _up(self) -> None:
        with suppress(*_BROKEN):
            while True:
                head = await self._reader.readuntil(b"\r\n\r\n")
                request, headers = fault_profile.parse(head)
                body = await self._body(headers)
                await self._fault_proxy.passable(is_watch=False)
                fate = self._fault_proxy.fate(request)
                if isinstance(fate, int):
                    self._writer.write(fault_profile.answer(fate))
                    await self._writer.drain()
                    continue

                self._is_watch = request.is_watch
                self._is_lost = fate is Fate.LOSE_ANSWER
                self._upper_writer.write(head + body)
                await self._upper_writer.drain()
                if "upgrade" in headers:
                    await _copy(self._reader, self._upper_writer)
                    return

    async def _body(self, headers: dict[str, str]) -> bytes:
        if "chunked" not in headers.get("transfer-encoding", ""):
            return await self._reader.readexactly(int(headers.get("content-length", 0)))

        pieces = b""
        while True:
            line = await self._reader.readuntil(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            pieces += line + await self._reader.readexactly(size + 2)
            if not size:
                return pieces

    async def _down(self) -> None:
        with suppress(*_BROKEN):
            while piece := await self._upper_reader.read(_PIECE):
                if self._is_lost:
                    self.abort()
                    return

                await self._fault_proxy.passable(self._is_watch)
                self._writer.write(piece)
                await self._writer.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
