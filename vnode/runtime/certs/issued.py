"""Certificates in use: issued by the agents' CA, renewed in time, handed to whoever needs them.

Each of the classes is one long-lived task. It acts when its certificate is due, when the CA
changes, and when what it has written is changed or deleted by somebody else.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from vnode.api import kinds
from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import ConfigError, NotFound, VnodeError
from vnode.api.listeners import Listeners
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import authority, keypairs, renewal
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.keypairs import CertificateRequest, Pair
from vnode.telemetry import metrics

CLIENT: Final = "vnode-candidate-scheduler"
"""Common name of the candidate scheduler's client certificate, and the Secret that it is in."""

FILES: Final = ("tls.crt", "tls.key", "ca.crt")
_RETRY: Final = 5.0  # seconds

log = logging.getLogger(__name__)


class ServingCertificate:
    """A certificate of a server, in an SSL context that is valid for as long as the server runs.

    With `clients`, the context lets in only clients with a certificate of the same CA.
    """

    def __init__(
        self,
        source: Authority,
        name: str,
        hosts: tuple[str, ...],
        *,
        clients: bool = False,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._authority = source
        self._name = name
        self._request = CertificateRequest(f"vnode-{name}", hosts)
        self._clients = clients
        self._clock: Clock = clock or SystemClock()
        self._chance = chance
        self._pair: Pair | None = None
        self._due: datetime | None = None  # None iff there is no certificate yet
        self._listeners: Listeners[[]] = Listeners()
        self.context: ssl.SSLContext = keypairs.server_context()

    def on_renewal(self, listener: Callable[[], None]) -> None:
        """Call `listener` when there is another certificate (see `pair`)."""
        self._listeners.add(listener)

    @property
    def pair(self) -> Pair:
        """The present certificate; call `start` first."""
        assert self._pair is not None, "start the certificate first"
        return self._pair

    async def start(self) -> ssl.SSLContext:
        """Issue the first certificate; the context is ready to be served with."""
        trusted = self._authority.bundle if self._clients else None
        self.context = keypairs.server_context(trusted)
        await self._renew()
        return self.context

    async def run(self) -> None:
        """Keep the certificate valid until cancelled; call `start` first."""
        stirred = asyncio.Event()
        self._authority.subscribe(stirred.set)
        await renewal.keep(stirred, self._look)

    async def _look(self) -> float:
        if self._clients:
            self.context.load_verify_locations(cadata=self._authority.bundle.decode())

        due = self._due is None or self._due <= self._clock.now()
        if due or self._pair is None or not self._authority.trusts(self._pair):
            await self._renew()

        return authority.until(self._due or self._clock.now(), self._clock)

    async def _renew(self) -> None:
        pair = await self._authority.issue(self._request)
        await asyncio.to_thread(keypairs.load, self.context, pair)
        self._pair = pair
        self._due = keypairs.renewal(pair.x509, self._chance())
        _count(self._name, pair)
        self._listeners.call()


class ClientCertificate:
    """The candidate scheduler's certificate: in a Secret, and in files if there is a folder.

    All replicas keep the Secret; who finds it wanting writes it, the others follow.
    """

    def __init__(
        self,
        client: Client,
        source: Authority,
        namespace: str,
        *,
        folder: Path | None = None,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.written = asyncio.Event()  # set once the Secret, and the files, are good
        self._client = client
        self._authority = source
        self._namespace = namespace
        self._folder = folder
        self._clock: Clock = clock or SystemClock()
        self._chance = chance()  # fixed, so that the time of renewal does not wander

    async def run(self) -> None:
        """Keep Secret and files good until cancelled."""
        stirred = asyncio.Event()
        self._authority.subscribe(stirred.set)
        informer = Informer.of_object(self._client, kinds.SECRETS, CLIENT, self._namespace)
        await renewal.keep_object(informer, self._look, stirred)

    async def _look(self) -> float:
        """Make everything right; answers when to look again, in seconds."""
        try:
            pair = await self._ensure()
            if self._folder is not None:
                await asyncio.to_thread(
                    write_files, self._folder, contents(pair, self._authority.bundle)
                )
        except VnodeError as error:
            log.warning("Secret %s/%s: %s", self._namespace, CLIENT, error)
            return _RETRY

        self.written.set()
        _count("candidate-scheduler", pair)
        return authority.until(keypairs.renewal(pair.x509, self._chance), self._clock)

    async def _ensure(self) -> Pair:
        pair = None
        bundle = b""
        try:
            secret = await self._client.get(kinds.SECRETS, CLIENT, self._namespace)
            pair = Pair(authority.data_of(secret, "tls.crt"), authority.data_of(secret, "tls.key"))
            bundle = authority.data_of(secret, "ca.crt")
        except NotFound:
            log.info("the Secret %s/%s is made", self._namespace, CLIENT)

        good = pair is not None and self._is_good(pair)
        if pair is None or not good:
            pair = await self._authority.issue(CertificateRequest(CLIENT))

        if not good or bundle != self._authority.bundle:
            data = contents(pair, self._authority.bundle)
            await self._client.apply(
                kinds.SECRETS, authority.secret_of(self._namespace, CLIENT, data)
            )

        return pair

    def _is_good(self, pair: Pair) -> bool:
        try:
            keypairs.check_pair(pair)
        except ConfigError:
            return False

        due = keypairs.renewal(pair.x509, self._chance)
        return due > self._clock.now() and self._authority.trusts(pair)


def contents(pair: Pair, bundle: bytes) -> dict[str, bytes]:
    """What the client needs, by the names of FILES."""
    return dict(zip(FILES, (pair.certificate, pair.key, bundle), strict=True))


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write those that differ, readable for this user only; ConfigError if that cannot be."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in files.items():
            path = folder / name
            if not path.exists() or path.read_bytes() != content:
                keypairs.write_private(path, content)
    except OSError as error:
        raise ConfigError(
            f"cannot write {error.filename or folder}: {error.strerror}: choose another "
            "--credentials-dir"
        ) from error


def _count(name: str, pair: Pair) -> None:
    end = keypairs.expiry(pair.x509)
    metrics.CERTIFICATE_EXPIRY.labels(name).set(end.timestamp())
