"""Keeps certificates of the agents' CA valid, in SSL contexts, in a Secret and in files.

Each of the classes is one long-lived task. It acts when its certificate is due, when the CA
changes, and when somebody else changes or deletes what it wrote.
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
from vnode.runtime.certs.contexts import ReplaceableContext
from vnode.runtime.certs.keypairs import CertificateRequest, Pair
from vnode.telemetry import audit, metrics

CLIENT: Final = "vnode-candidate-scheduler"
"""Common name of the candidate scheduler's client certificate, and the name of its Secret."""

FILES: Final = ("tls.crt", "tls.key", "ca.crt")
_RETRY: Final = 5.0  # seconds

log = logging.getLogger(__name__)


class ServingCertificate:
    """Keeps a server's certificate valid in an SSL context that serves as long as the process.

    With `clients`, the context accepts only clients with a certificate of the same CA: once that is
    another one, no longer those with a certificate of the former.
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
        self.context = ReplaceableContext()
        self._trusted: bytes | None = None  # the CAs of clients, as the context has them

    def on_renewal(self, listener: Callable[[], None]) -> None:
        """Call `listener` when there is a new certificate (see `pair`)."""
        self._listeners.add(listener)

    @property
    def pair(self) -> Pair:
        """The present certificate; call `start` first."""
        assert self._pair is not None, "start the certificate first"
        return self._pair

    async def start(self) -> ssl.SSLContext:
        """Issue the first certificate, and return the context to serve with."""
        await self._renew()
        return self.context

    async def run(self) -> None:
        """Keep the certificate valid until cancelled; call `start` first."""
        changed = asyncio.Event()
        self._authority.subscribe(changed.set)
        await renewal.keep(changed, self._reconcile)

    async def _reconcile(self) -> float:
        due = self._due is None or self._due <= self._clock.now()
        if due or self._pair is None or not self._authority.trusts(self._pair.x509):
            await self._renew()
        elif self._clients and self._trusted != self._authority.bundle:
            await self._serve(self._pair)

        return authority.seconds_until(self._due or self._clock.now(), self._clock)

    async def _renew(self) -> None:
        pair = await self._authority.issue(self._request)
        await self._serve(pair)
        self._pair = pair
        self._due = keypairs.renewal(pair.x509, self._chance())
        _record_expiry(self._name, pair)
        self._listeners.call()

    async def _serve(self, pair: Pair) -> None:
        trusted = self._authority.bundle if self._clients else None
        await asyncio.to_thread(self.context.serve, pair, trusted)
        self._trusted = trusted


class ClientCertificate:
    """Keeps the candidate scheduler's certificate in a Secret, and in files if there is a folder.

    All replicas check the Secret, and the first to find it missing or outdated writes it.
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
        self.written = asyncio.Event()  # set once the Secret and the files are valid
        self._client = client
        self._authority = source
        self._namespace = namespace
        self._folder = folder
        self._clock: Clock = clock or SystemClock()
        self._chance = chance()  # fixed, so that the time of renewal does not change

    async def run(self) -> None:
        """Keep Secret and files valid until cancelled."""
        changed = asyncio.Event()
        self._authority.subscribe(changed.set)
        informer = Informer.of_object(self._client, kinds.SECRETS, CLIENT, self._namespace)
        await renewal.keep_object(informer, self._reconcile, changed)

    async def _reconcile(self) -> float:
        """Make Secret and files valid; return the seconds until the next time."""
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
        _record_expiry("candidate-scheduler", pair)
        return authority.seconds_until(keypairs.renewal(pair.x509, self._chance), self._clock)

    async def _ensure(self) -> Pair:
        pair = None
        bundle = b""
        try:
            secret = await self._client.get(kinds.SECRETS, CLIENT, self._namespace)
            pair = Pair(authority.data_of(secret, "tls.crt"), authority.data_of(secret, "tls.key"))
            bundle = authority.data_of(secret, "ca.crt")
        except NotFound:
            log.info("creating Secret %s/%s", self._namespace, CLIENT)

        valid = pair is not None and self._is_valid(pair)
        if pair is None or not valid:
            pair = await self._authority.issue(CertificateRequest(CLIENT))

        if not valid or bundle != self._authority.bundle:
            data = contents(pair, self._authority.bundle)
            secret = authority.secret_of(self._namespace, CLIENT, data)
            with audit.on_behalf_of(audit.AGENT):
                await self._client.apply(kinds.SECRETS, secret)

        return pair

    def _is_valid(self, pair: Pair) -> bool:
        try:
            keypairs.check_pair(pair)
        except ConfigError:
            return False

        due = keypairs.renewal(pair.x509, self._chance)
        return due > self._clock.now() and self._authority.trusts(pair.x509)


def contents(pair: Pair, bundle: bytes) -> dict[str, bytes]:
    """Return what the client needs, by the names of FILES."""
    return dict(zip(FILES, (pair.certificate, pair.key, bundle), strict=True))


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write the files that differ, readable for this user only; ConfigError if that fails."""
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


def _record_expiry(name: str, pair: Pair) -> None:
    end = keypairs.expiry(pair.x509)
    metrics.CERTIFICATE_EXPIRY.labels(name).set(end.timestamp())
