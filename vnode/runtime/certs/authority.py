"""Manages the agents' own CA, in the Secret `vnode-ca`, which all replicas share.

The first replica creates the Secret; the others find it. Near its end a successor is made: it is
published in the bundle at once, and signs only a day later, when everybody has the bundle. Its
predecessor stays in the bundle until it ends, and with it all certificates that it signed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from vnode.api import kinds, objects
from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import AlreadyExists, ConfigError, Conflict, NotFound, VnodeError
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import keypairs, renewal
from vnode.runtime.certs.keypairs import CertificateRequest, Pair
from vnode.telemetry import audit, metrics

SECRET: Final = "vnode-ca"  # noqa: S105 - its name
PUBLISHED_BEFORE_USE: Final = timedelta(days=1)
MAX_SLEEP: Final = 3600.0  # seconds, because wall clocks may be set
_RETRY: Final = 5.0  # seconds

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Generations:
    """Holds the CA, and the previous one until that has ended."""

    current: Pair
    previous: Pair | None = None

    def alive(self, now: datetime) -> list[Pair]:
        """Return the CAs that have not ended, newest first."""
        pairs = [pair for pair in (self.current, self.previous) if pair is not None]
        return [pair for pair in pairs if keypairs.expiry(pair.x509) > now]

    def signer(self, now: datetime) -> Pair:
        """Return the CA that signs: the newest that was published for long enough."""
        alive = self.alive(now)
        usable = [p for p in alive if p.x509.not_valid_before_utc + PUBLISHED_BEFORE_USE <= now]
        return (usable or alive[::-1] or [self.current])[0]

    def bundle(self, now: datetime) -> bytes:
        """Return the certificates that others have to trust, in PEM."""
        return keypairs.bundle([p.certificate for p in self.alive(now)])

    def successor(self, now: datetime) -> Generations:
        """Return generations with a new CA; a predecessor that has ended is dropped."""
        old = self.current if keypairs.expiry(self.current.x509) > now else None
        return Generations(keypairs.make_authority(now), old)


class Authority:
    """Issues certificates by the CA of this cluster's agents. Call `load` first, then `run`."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._clock: Clock = clock or SystemClock()
        self._chance = chance()  # fixed, so that the time of renewal does not change
        self._generations: Generations | None = None
        self._listeners: Listeners[[]] = Listeners()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever there is a new CA. It must not await."""
        self._listeners.add(listener)

    @property
    def bundle(self) -> bytes:
        """The CA certificates to trust, in PEM, newest first."""
        return self._known().bundle(self._clock.now())

    def trusts(self, certificate: x509.Certificate) -> bool:
        """Tell whether a certificate was issued by a CA in the bundle."""
        return keypairs.is_in_bundle(certificate, self.bundle)

    async def issue(self, request: CertificateRequest) -> Pair:
        """Issue a certificate with a new key."""
        now = self._clock.now()
        signer = self._known().signer(now)
        return await asyncio.to_thread(keypairs.issue, signer, request, now)

    async def load(self) -> None:
        """Read the CA, or create it if there is none, and renew it if that is due.

        ConfigError if the Secret holds something else.
        """
        try:
            secret = await self._client.get(kinds.SECRETS, SECRET, self._namespace)
        except NotFound:
            await self._create()
            return

        generations = parse(secret)
        self._adopt(generations)
        if self._due(generations) <= self._clock.now():
            await self._renew(secret, generations)

    async def run(self) -> None:
        """Follow the Secret, create it again if it is deleted, and renew the CA in time."""
        informer = Informer.of_object(self._client, kinds.SECRETS, SECRET, self._namespace)
        await renewal.keep_object(informer, self._reconcile)

    async def _reconcile(self) -> float:
        try:
            await self.load()
        except VnodeError as error:
            log.warning("the CA in Secret %s/%s: %s", self._namespace, SECRET, error)
            return _RETRY

        return seconds_until(self._due(self._known()), self._clock)

    def _due(self, generations: Generations) -> datetime:
        return keypairs.renewal(generations.current.x509, self._chance)

    async def _create(self) -> None:
        pair = await asyncio.to_thread(keypairs.make_authority, self._clock.now())
        generations = Generations(pair)
        secret = build(self._namespace, generations, self._clock.now())
        try:
            with audit.on_behalf_of(audit.AGENT):
                await self._client.create(kinds.SECRETS, secret)
        except AlreadyExists:
            secret = await self._client.get(kinds.SECRETS, SECRET, self._namespace)
            generations = parse(secret)
        else:
            log.info("created a new CA in Secret %s/%s", self._namespace, SECRET)

        self._adopt(generations)

    async def _renew(self, secret: Object, generations: Generations) -> None:
        now = self._clock.now()
        renewed = await asyncio.to_thread(generations.successor, now)
        data = build(self._namespace, renewed, now)["data"]
        body = objects.if_unchanged({"data": data}, secret)
        try:
            with audit.on_behalf_of(audit.AGENT):
                await self._client.patch(kinds.SECRETS, SECRET, body, self._namespace)
        except Conflict:
            renewed = parse(await self._client.get(kinds.SECRETS, SECRET, self._namespace))
        else:
            log.info("created a successor of the CA in Secret %s/%s", self._namespace, SECRET)

        self._adopt(renewed)

    def _adopt(self, generations: Generations) -> None:
        if generations == self._generations:
            return

        self._generations = generations
        end = keypairs.expiry(generations.current.x509)
        metrics.CERTIFICATE_EXPIRY.labels("ca").set(end.timestamp())
        self._listeners.call()

    def _known(self) -> Generations:
        assert self._generations is not None, "load the authority first"
        return self._generations


def seconds_until(due: datetime, clock: Clock) -> float:
    """Return the seconds to sleep until something is due: at least 1, at most MAX_SLEEP."""
    return min(max((due - clock.now()).total_seconds(), 1.0), MAX_SLEEP)


def build(namespace: str, generations: Generations, now: datetime) -> Object:
    """Build the Secret: CA as tls.crt and tls.key, bundle as ca.crt, and the previous CA."""
    previous = generations.previous or Pair(b"", b"")
    data = {
        "tls.crt": generations.current.certificate,
        "tls.key": generations.current.key,
        "ca.crt": generations.bundle(now),
        "previous.crt": previous.certificate,
        "previous.key": previous.key,
    }
    return secret_of(namespace, SECRET, data)


def secret_of(
    namespace: str, name: str, data: dict[str, bytes], *, kind: str = "kubernetes.io/tls"
) -> Object:
    """Build a Secret of that type."""
    return {
        "apiVersion": kinds.SECRETS.api_version,
        "kind": kinds.SECRETS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "type": kind,
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def data_of(secret: Object, key: str) -> bytes:
    """Return one value of a Secret, b"" if it is missing or unreadable."""
    try:
        return base64.b64decode((secret.get("data") or {}).get(key) or "", validate=True)
    except (binascii.Error, ValueError):
        return b""


def parse(secret: Object) -> Generations:
    """Parse the CA in a Secret; ConfigError, with the cure, if there is none."""
    current = Pair(data_of(secret, "tls.crt"), data_of(secret, "tls.key"))
    previous = Pair(data_of(secret, "previous.crt"), data_of(secret, "previous.key"))
    try:
        keypairs.check_pair(current)
        if previous.certificate:
            keypairs.check_pair(previous)
    except ConfigError as error:
        raise ConfigError(
            f"Secret {objects.key(secret)} holds no usable CA ({error}): delete it, and the agent "
            "creates another"
        ) from error

    return Generations(current, previous if previous.certificate else None)
