"""Keeps the cluster's client CA up to date, by which the kubelet API accepts client certificates.

Every API server publishes it in a ConfigMap; where that is not so (some managed clouds), a file
can be named. Without either only tokens are accepted. A change counts from the next request on.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

from cryptography import x509

from vnode.api import kinds, objects
from vnode.api.clock import Clock, SystemClock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import keypairs

_NAMESPACE: Final = "kube-system"
_NAME: Final = "extension-apiserver-authentication"
_KEY: Final = "client-ca-file"
_FILE_INTERVAL: Final = 60.0  # seconds between two reads of a file, as in the kubelet
_TIMEOUT: Final = 5.0  # seconds that listeners wait for the first answer of the API server

log = logging.getLogger(__name__)


class ClientAuthorities:
    """Follows the cluster's client CA; `certificates` is empty until it is known."""

    def __init__(
        self, client: Client, file: Path | None = None, clock: Clock | None = None
    ) -> None:
        self.certificates: tuple[x509.Certificate, ...] = ()
        self._bundle = ""
        self._file = file
        self._clock: Clock = clock or SystemClock()
        self._known = asyncio.Event()
        self._informer = Informer.of_object(
            client, kinds.CONFIG_MAPS, _NAME, _NAMESPACE, clock=clock
        )
        self._informer.subscribe(self._changed)

    async def wait(self) -> None:
        """Wait until the CA is known, for some seconds at most."""
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._known.wait()
        except TimeoutError:
            log.warning(
                "no client CA is known (%s): the kubelet API accepts bearer tokens only until "
                "there is one; grant the agent get, list and watch on ConfigMap %s/%s, or name a "
                "file with the client CA",
                self._informer.failure or "the ConfigMap has none",
                _NAMESPACE,
                _NAME,
            )

    async def run(self) -> None:
        """Follow the ConfigMap, or the file, until cancelled."""
        if self._file is None:
            await self._informer.run()
        else:
            await self._follow_file(self._file)

    async def _follow_file(self, file: Path) -> None:
        while True:
            try:
                self._set(await asyncio.to_thread(file.read_text))
            except (OSError, UnicodeDecodeError) as error:
                log.warning("cannot read the client CA %s: %s", file, error)

            await self._clock.sleep(_FILE_INTERVAL)

    def _changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and objects.name(new) == _NAME:
            self._set(str((new.get("data") or {}).get(_KEY) or ""))

    def _set(self, bundle: str) -> None:
        """Use a new bundle; an unreadable one leaves the old one in force."""
        if bundle == self._bundle or not bundle.strip():
            return

        certificates = keypairs.parse_bundle(bundle.encode())
        if not certificates:
            log.warning("the new client CA is not a PEM bundle; the former one stays in use")
            return

        self._bundle = bundle
        self.certificates = tuple(certificates)
        self._known.set()
