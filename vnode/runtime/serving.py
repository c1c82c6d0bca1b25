"""Serves an aiohttp application on an address, until its task is cancelled.

Webhook, extender, dashboard and health are such servers. Whoever reaches one may send anything, so
connections, requests and what is served at once are bounded. A cancelled server accepts no more
connections, gives running handlers some seconds, and then closes their connections.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any, Final

import aiohttp
from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import NameOID

from vnode.api.errors import ConfigError
from vnode.runtime.certs import keypairs
from vnode.runtime.connections import (
    ConnectionLimits,
    GuardingProtocol,
    UnauthenticatedConnections,
)
from vnode.runtime.listening import ListeningSocket, listen

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Turns = Callable[[web.Request], AbstractAsyncContextManager[None]]

_GRACE: Final = 5.0  # seconds that running handlers get at the end
_HANDSHAKE: Final = 5.0  # seconds
_AT_ONCE: Final = 32  # requests whose bodies are read; most take a millisecond
_TURN: Final = 8.0  # seconds that others wait for theirs; API servers give a webhook 10 s
_LINGERING: Final = 1.0  # seconds in which the rest of a refused body is read and dropped


class Server:
    """Serves an application. `ready` is set while it listens; then `port` is known.

    `serves` tells whether a path is one of this server's: if not, a request is answered with 404
    before its body is read. Without it, the paths are those of the application. `turns` says when a
    request is handled whose body was read; by default so many of each page are at once.

    With `authenticates`, the middlewares of the application refuse callers that they do not know,
    and the limits are for connections of which no request has passed them yet. Without it, they are
    for all connections. With `authorizes_later`, a handler that knows its caller calls
    `connections.on_authorized`, and nothing else bounds what it does.
    """

    def __init__(
        self,
        name: str,
        app: web.Application,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None = None,
        grace: float = _GRACE,
        limits: ConnectionLimits | None = None,
        authenticates: bool = False,
        authorizes_later: bool = False,
        serves: Callable[[str], Awaitable[bool]] | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port  # 0 until it listens, if any free port will do
        self.ready = asyncio.Event()
        self._app = app
        self._ssl = ssl_context
        self._grace = grace
        self.connections = UnauthenticatedConnections(limits)
        if authenticates:
            app.middlewares.append(_forget(self.connections))
        elif not authorizes_later:
            app.middlewares.insert(0, _bound(self.connections, turns or _some_at_once()))

        if serves is not None:
            app.middlewares.insert(0, _only(serves))

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
            lingering_time=_LINGERING,
            auto_decompress=False,  # no caller compresses; a few bytes could become gigabytes
        )
        await runner.setup()
        listening: asyncio.Server | None = None
        try:
            listening = await self._listen(runner)
            await asyncio.Event().wait()
        finally:
            self.ready.clear()
            if listening is not None:
                listening.close()

            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> asyncio.Server:
        serve = runner.server
        assert serve is not None, "set up"
        try:
            backlog = self.connections.limits.connections
            opened = await asyncio.to_thread(listen, self.host, self.port, backlog)
            listening = await asyncio.get_running_loop().create_server(
                lambda: GuardingProtocol(self.connections, serve()),
                sock=ListeningSocket(opened, self.connections),
                ssl=self._ssl,
                ssl_handshake_timeout=_HANDSHAKE if self._ssl else None,
                backlog=backlog,
            )
        except OSError as error:
            raise ConfigError(
                f"{self.name} cannot listen on {self.host} port {self.port}: {error.strerror}: "
                f"stop the process that listens there, or choose another address"
            ) from error

        self.port = int(listening.sockets[0].getsockname()[1])
        self.ready.set()
        return listening


def _forget(connections: UnauthenticatedConnections) -> Any:
    """Return the innermost middleware: whose request comes so far, and finds a page, is known."""

    @web.middleware
    async def authorized(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info.http_exception is None:
            connections.on_authorized(request)

        return await handler(request)

    return authorized


def _only(serves: Callable[[str], Awaitable[bool]]) -> Any:
    """Return the outermost middleware of a server whose paths are known to few."""

    @web.middleware
    async def secluded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.match_info.http_exception is not None or not await serves(request.path):
            refusal = web.HTTPNotFound()
            refusal.force_close()
            raise refusal

        return await handler(request)

    return secluded


def _some_at_once() -> Turns:
    # By route: pages that take long keep nobody from the others. As many as there are pages.
    turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_AT_ONCE))

    def take(request: web.Request) -> asyncio.Semaphore:
        resource = request.match_info.route.resource
        return turns[resource.canonical if resource is not None else ""]

    return take


def _bound(connections: UnauthenticatedConnections, turns: Turns) -> Any:
    """Return the outermost middleware, which reads whole requests, and serves some at once.

    A caller that is slow to send or to read takes nobody's place; its connection ends in time.
    """

    @web.middleware
    async def bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            await _read(request)
            async with AsyncExitStack() as stack:
                await _enter(stack, turns(request))
                response = await handler(request)
        except web.HTTPException as refusal:
            refusal.force_close()
            raise

        connections.on_answering(request, response.content_length or 0)
        with suppress(ConnectionError):  # aiohttp meets it again, and ends the connection
            await response.prepare(request)
            await response.write_eof()
            connections.on_served(request)

        return response

    return bounded


async def _enter(stack: AsyncExitStack, turn: AbstractAsyncContextManager[None]) -> None:
    """Wait for a turn, as a burst of pods has to; 503 if none comes.

    Without Retry-After: an API server obeys it until its own deadline, and shows the user whose
    object it was the address that did not answer, with the secret of a webhook's path in it.
    """
    try:
        async with asyncio.timeout(_TURN):
            await stack.enter_async_context(turn)
    except TimeoutError as error:
        raise web.HTTPServiceUnavailable(text="busy\n") from error


async def _read(request: web.Request) -> None:
    """Read the body, which handlers then get at once; 400 if it does not come, 413 if too large."""
    try:
        await request.read()
    except (ConnectionError, aiohttp.ClientError, web.RequestPayloadError) as error:
        raise web.HTTPBadRequest(text="the body is not whole\n") from error


def peer_certificate(request: web.Request) -> x509.Certificate | None:
    """Return the client certificate of a request, None without one.

    The TLS handshake has verified it by the CA that the server had then.
    """
    transport = request.transport
    tls = transport.get_extra_info("ssl_object") if transport is not None else None
    encoded = tls.getpeercert(binary_form=True) if tls is not None else None
    return keypairs.parse_der(encoded) if encoded else None


def only_client(common_name: str, is_trusted: Callable[[x509.Certificate], bool]) -> Any:
    """Return a middleware that answers 403 unless the client certificate has that name.

    `is_trusted` is asked at each request, since connections last longer than a CA may.
    """

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        certificate = peer_certificate(request)
        if certificate is None or _common_name(certificate) != common_name:
            raise web.HTTPForbidden(text=f"only {common_name} may call this")

        if not is_trusted(certificate):
            raise web.HTTPForbidden(text="the certificate is of a former CA\n")

        return await handler(request)

    return check


def _common_name(certificate: x509.Certificate) -> str | None:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else None


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
