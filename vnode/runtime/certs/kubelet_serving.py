"""The certificate that virtual nodes show: from a signer or from files, or the agents' own.

API servers that check kubelets' certificates know nothing of the agents' own CA. For them the
certificate comes from elsewhere (a Source). Until it is there, and whenever it has ended, the
agents' own is shown, so that API servers that do not check are never the worse for it; and what is
missing, and who has to do what, is said in `health`.
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
from vnode.runtime.links import LinkHealth

OWN: Final = "API servers that check kubelets' certificates refuse logs and exec until then"


class KubeletCertificateConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the certificate of the kubelet API comes from; by default, the agents' own CA."""

    signer: str = ""
    """Name of a signer that CertificateSigningRequests are made to."""
    certificate: str = ""
    """A PEM file of the user's, with intermediates; read again when it changes."""
    key: str = ""
    """The PEM file of its private key."""

    def check(self) -> None:
        """Raise ConfigError, with the cure, if these do not go together."""
        if bool(self.certificate) != bool(self.key):
            raise ConfigError("kubeletCertificate: name both, certificate and key, or neither")

        if self.signer and self.certificate:
            raise ConfigError("kubeletCertificate: name a signer, or files, but not both")

        if self.signer and "/" not in self.signer:
            raise ConfigError(
                f"kubeletCertificate: {self.signer!r} is no signer: it is called as "
                "kubernetes.io/kubelet-serving is"
            )


class Source(Protocol):
    """Gets certificates from elsewhere."""

    pair: Pair | None
    """The newest one; None before the first."""
    health: LinkHealth
    """Unhealthy while there is no certificate that can be shown, or the next one is in danger."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep `pair` and `health` right until cancelled; call `changed` after each change."""


class KubeletCertificate:
    """The one to show now. Call `start` first, and keep `run` running."""

    def __init__(self, own: ServingCertificate, source: Source | None, clock: Clock) -> None:
        self._own = own
        self._source = source
        self._clock = clock
        self._listeners: Listeners[[]] = Listeners()
        own.on_renewal(self._listeners.call)

    @property
    def pair(self) -> Pair:
        """The certificate and its key."""
        better = self._source.pair if self._source else None
        if better is not None and keypairs.expiry(better.x509) > self._clock.now():
            return better

        return self._own.pair

    @property
    def health(self) -> LinkHealth | None:
        """Whether a certificate from elsewhere is shown; None if none was asked for."""
        return self._source.health if self._source else None

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` when `pair` or `health` may have changed. It must not await."""
        self._listeners.add(listener)

    async def start(self) -> None:
        """From here on there is a `pair`."""
        await self._own.start()

    async def run(self) -> None:
        """Keep everything valid until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._own.run(), name="kubelet-certificate-own")
            if self._source is not None:
                group.create_task(
                    self._source.run(self._listeners.call), name="kubelet-certificate"
                )
