"""Reads a serving certificate from files that others maintain: cert-manager, a mounted Secret.

The files are read every minute, as by the kubelet. Nobody can replace two files at once, so a pair
that does not match leaves the former one in use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.runtime.certs import keypairs
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.certs.kubelet_serving import OWN
from vnode.runtime.link_health import LinkHealth

_INTERVAL: Final = 60.0  # seconds between two reads
_RETRY: Final = 5.0  # seconds after a failure: the files may be being replaced

log = logging.getLogger(__name__)


class CertificateFiles:
    """Reads two PEM files; a `kubelet_serving.Source`."""

    def __init__(self, certificate: Path, key: Path, clock: Clock) -> None:
        self.pair: Pair | None = None
        self.health = LinkHealth(False, "NotRead", f"{certificate} was not read yet", clock.now())
        self._certificate = certificate
        self._key = key
        self._clock = clock

    async def run(self, changed: Callable[[], None]) -> None:
        """Follow the files until cancelled."""
        while True:
            before = (self.pair, self.health.reason, self.health.message)
            await self._update()
            if before != (self.pair, self.health.reason, self.health.message):
                changed()

            await self._clock.sleep(_INTERVAL if self.health.healthy else _RETRY)

    async def _update(self) -> None:
        try:
            pair = await asyncio.to_thread(self._read)
        except ConfigError as error:
            log.warning("the kubelet API's certificate: %s", error)
            self._set_health(False, "BadFile", f"{error}; {OWN}")
            return

        self.pair = pair
        end = keypairs.expiry(pair.x509)
        if end <= self._clock.now():
            message = f"{self._certificate} ended at {objects.timestamp(end)}: replace it; {OWN}"
            self._set_health(False, "Expired", message)
        else:
            self._set_health(
                True, "FromFile", f"{self._certificate} ends at {objects.timestamp(end)}"
            )

    def _read(self) -> Pair:
        try:
            pair = Pair(self._certificate.read_bytes(), self._key.read_bytes())
        except OSError as error:
            raise ConfigError(f"cannot read {error.filename}: {error.strerror}") from error

        try:
            keypairs.check_pair(pair, foreign=True)
        except ConfigError as error:
            raise ConfigError(f"{self._certificate} and {self._key}: {error}") from error

        return pair

    def _set_health(self, healthy: bool, reason: str, message: str) -> None:
        self.health = LinkHealth(healthy, reason, message, self._clock.now())
