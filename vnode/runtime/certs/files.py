"""A serving certificate that others keep in files: cert-manager, a mounted Secret, a person.

Files are looked at every minute, as the kubelet does; whoever replaces two files cannot do so at
once, so a pair that does not fit leaves the former one in force.
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
from vnode.runtime.links import LinkHealth

_INTERVAL: Final = 60.0  # seconds between looks
_AFTER_A_FAULT: Final = 5.0  # seconds: it may be in the middle of being replaced

log = logging.getLogger(__name__)


class CertificateFiles:
    """A kubelet_certificate.Source over two PEM files."""

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
            await self._look()
            if before != (self.pair, self.health.reason, self.health.message):
                changed()

            await self._clock.sleep(_INTERVAL if self.health.healthy else _AFTER_A_FAULT)

    async def _look(self) -> None:
        try:
            found = await asyncio.to_thread(self._read)
        except ConfigError as error:
            log.warning("the kubelet API's certificate: %s", error)
            self._say(False, "BadFile", f"{error}; {OWN}")
            return

        self.pair = found
        end = keypairs.expiry(found.x509)
        if end <= self._clock.now():
            message = f"{self._certificate} ended at {objects.timestamp(end)}: replace it; {OWN}"
            self._say(False, "Expired", message)
        else:
            self._say(True, "FromFile", f"{self._certificate} ends at {objects.timestamp(end)}")

    def _read(self) -> Pair:
        try:
            found = Pair(self._certificate.read_bytes(), self._key.read_bytes())
        except OSError as error:
            raise ConfigError(f"cannot read {error.filename}: {error.strerror}") from error

        try:
            keypairs.check_pair(found, foreign=True)
        except ConfigError as error:
            raise ConfigError(f"{self._certificate} and {self._key}: {error}") from error

        return found

    def _say(self, healthy: bool, reason: str, message: str) -> None:
        self.health = LinkHealth(healthy, reason, message, self._clock.now())
