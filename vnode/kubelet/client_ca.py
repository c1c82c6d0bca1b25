"""Which client certificates the kubelet API accepts: the cluster's own client CA, kept up to date.

Every API server publishes it in a ConfigMap; where that is not so (some managed clouds), a file
can be named, and without either, callers come with tokens only. A change is passed on, so that
listeners make new TLS contexts: one that is in use can be given more authorities, but none can be
taken out of it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock, SystemClock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

_NAMESPACE: Final = "kube-system"
_NAME: Final = "extension-apiserver-authentication"
_KEY: Final = "client-ca-file"
_FILE_INTERVAL: Final = 60.0  # seconds between looks at a file, as the kubelet does
_PATIENCE: Final = 5.0  # seconds that listeners wait for the first answer of the API server

log = logging.getLogger(__name__)


class ClientAuthorities:
    """The PEM bundle of client authorities; "" while none is known."""

    def __init__(
        self, client: Client, file: Path | None = None, clock: Clock | None = None
    ) -> None:
        self.bundle = ""
        self._file = file
        self._clock: Clock = clock or SystemClock()
        self._listeners: list[Callable[[], None]] = []
        self._known = asyncio.Event()
        self._informer = Informer(
            client,
            kinds.CONFIG_MAPS,
            namespace=_NAMESPACE,
            field_selector=f"metadata.name={_NAME}",
            clock=clock,
        )
        self._informer.subscribe(self._changed)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `bundle` changes."""
        self._listeners.append(listener)

    async def wait(self) -> None:
        """Return when the first bundle is known, or when it does not seem to come."""
        try:
            async with asyncio.timeout(_PATIENCE):
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
        """Take a bundle over; an unreadable one leaves the old one in force."""
        if bundle == self.bundle or not bundle.strip():
            return

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=bundle)
        except (ssl.SSLError, ValueError) as error:
            log.warning("the client CA is no PEM bundle, the former one stays: %s", error)
            return

        self.bundle = bundle
        self._known.set()
        for listener in self._listeners:
            listener()


def require(context: ssl.SSLContext, bundle: str) -> ssl.SSLContext:
    """Make a server context ask for client certificates of these authorities; none is needed.

    A certificate of another authority ends the handshake: `ssl` cannot let one through unverified,
    so such a caller sees a TLS alert where a kubelet answers 401.
    """
    if bundle:
        context.load_verify_locations(cadata=bundle)
        context.verify_mode = ssl.CERT_OPTIONAL
        # Authorities that cluster installers make often lack the key identifiers that it demands.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT

    return context
