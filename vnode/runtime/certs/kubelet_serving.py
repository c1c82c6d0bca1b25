"""Selects the certificate of virtual nodes: from a signer or from files, else the agents' own.

API servers that check kubelets' certificates do not know the agents' own CA. For them the
certificate comes from elsewhere (a Source). Until it exists, and whenever it has ended, the agents'
own is used, which suits API servers that do not check; and `health` says what is missing, and who
has to do what.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.listeners import Listeners
from vnode.runtime.certs import keypairs
from vnode.runtime.certs.issued import ServingCertificate
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.link_health import LinkHealth

OWN: Final = "API servers that check kubelets' certificates refuse logs and exec until then"


class KubeletCertificateConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Says where the certificate of the kubelet API comes from: by default, the agents' own CA."""

    signer: str = ""
    """Name of a signer for CertificateSigningRequests."""
    certificate: str = ""
    """A PEM file of the user's, with intermediates; read again when it changes."""
    key: str = ""
    """The PEM file of its private key."""

    def check(self) -> None:
        """Raise ConfigError, with the cure, if the fields contradict each other."""
        if bool(self.certificate) != bool(self.key):
            raise ConfigError("kubeletCertificate: name both, certificate and key, or neither")

        if self.signer and self.certificate:
            raise ConfigError("kubeletCertificate: name a signer, or files, but not both")

        if self.signer and "/" not in self.signer:
            raise ConfigError(
                f"kubeletCertificate: {self.signer!r} is not a signer's name: write one like "
                "kubernetes.io/kubelet-serving"
            )


class Source(Protocol):
    """Gets certificates from elsewhere."""

    pair: Pair | None
    """The newest one; None before the first."""
    health: LinkHealth
    """Unhealthy while there is no usable certificate, or the next one cannot be had yet."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep `pair` and `health` current until cancelled; call `changed` after each change."""


class KubeletCertificate:
    """Selects the certificate to use now. Call `start` first, then `run`."""

    def __init__(self, own: ServingCertificate, source: Source | None, clock: Clock) -> None:
        self._own = own
        self._source = source
        self._clock = clock
        self._listeners: Listeners[[]] = Listeners()
        own.on_renewal(self._listeners.call)

    @property
    def pair(self) -> Pair:
        """The certificate and its key."""
        preferred = self._source.pair if self._source else None
        if preferred is not None and keypairs.expiry(preferred.x509) > self._clock.now():
            return preferred

        return self._own.pair

    @property
    def health(self) -> LinkHealth | None:
        """The health of the source; None without a source."""
        return self._source.health if self._source else None

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` when `pair` or `health` may have changed. It must not await."""
        self._listeners.add(listener)

    async def start(self) -> None:
        """Issue the agents' own certificate, so that there is a `pair`."""
        await self._own.start()

    async def run(self) -> None:
        """Keep the certificates valid until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._own.run(), name="kubelet-certificate-own")
            if self._source is not None:
                group.create_task(
                    self._source.run(self._listeners.call), name="kubelet-certificate"
                )
