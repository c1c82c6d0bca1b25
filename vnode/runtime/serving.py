"""Serves an aiohttp application on an address, until its task is cancelled.

Webhook, extender, dashboard and health are such servers. A cancelled server accepts no more
connections, gives running handlers some seconds, and then closes their connections.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import NameOID

from vnode.api.errors import ConfigError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_GRACE: Final = 5.0  # seconds that running handlers get at the end


class Server:
    """Serves an application. `ready` is set while it listens; then `port` is known."""

    def __init__(
        self,
        name: str,
        app: web.Application,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None = None,
        grace: float = _GRACE,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port  # 0 until it listens, if any free port will do
        self.ready = asyncio.Event()
        self._app = app
        self._ssl = ssl_context
        self._grace = grace

    async def run(self) -> None:
        """Listen until cancelled; ConfigError if that is impossible on the address.

        A handler runs to its end even if its client disconnects.
        """
        runner = web.AppRunner(
            self._app,
            access_log=None,
            handle_signals=False,
            handler_cancellation=False,
            shutdown_timeout=self._grace,
        )
        await runner.setup()
        try:
            await self._listen(runner)
            await asyncio.Event().wait()
        finally:
            self.ready.clear()
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        site = web.TCPSite(runner, self.host, self.port, ssl_context=self._ssl)
        try:
            await site.start()
        except OSError as error:
            raise ConfigError(
                f"{self.name} cannot listen on {self.host} port {self.port}: {error.strerror}: "
                f"stop the process that listens there, or choose another address"
            ) from error

        self.port = int(runner.addresses[0][1])
        self.ready.set()


def peer_name(request: web.Request) -> str | None:
    """Return the common name in the client certificate of a request, None without a certificate.

    The TLS handshake has verified the certificate by the CA of the server.
    """
    transport = request.transport
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    encoded = tls.getpeercert(binary_form=True) if tls is not None else None
    if not encoded:
        return None

    subject = x509.load_der_x509_certificate(encoded).subject
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else None


def only_client(common_name: str) -> Any:
    """Return a middleware that answers 403 unless the client certificate has that name."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if peer_name(request) != common_name:
            raise web.HTTPForbidden(text=f"only {common_name} may call this")

        return await handler(request)

    return check


def only_hosts(names: Collection[str]) -> Any:
    """Return a middleware that answers 403 to requests for hosts of other names.

    Without it, a page of another site could make its own name resolve to this server.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.url.host not in names:
            raise web.HTTPForbidden(text="not by this name\n")

        return await handler(request)

    return check
