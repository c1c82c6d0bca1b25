"""TLS contexts of servers, which take a new certificate, or another CA of clients, as they serve.

A context of the `ssl` module can be taught to trust more CAs, but not to trust fewer, and whoever
has a session of it need not show a certificate again. So the context that a server listens with
passes each new connection on to another one, which is replaced.
"""

from __future__ import annotations

import os
import ssl
from typing import Any

from vnode.kube import linux_calls
from vnode.kube.tls_records import BoundedContext
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.keypairs import Pair


class ReplaceableContext(BoundedContext):
    """Serves each new connection with the context that `serve` made last."""

    _inner: BoundedContext

    def __new__(cls) -> ReplaceableContext:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self) -> None:
        self._inner = BoundedContext(ssl.PROTOCOL_TLS_SERVER)

    def serve(self, pair: Pair, client_authority: bytes | None = None) -> None:
        """Serve with this certificate from the next connection on, TLS 1.2 or later.

        With `client_authority`, only clients with a certificate of these CAs pass the handshake.
        It reads files: call it in a thread.
        """
        self._inner = server_context(pair, client_authority)

    def secure(self, *args: Any) -> Any:
        """Make the object that decrypts what one connection is fed."""
        return self._inner.secure(*args)


def server_context(pair: Pair, client_authority: bytes | None = None) -> BoundedContext:
    """Make a context as `ReplaceableContext.serve` says.

    It gives out no tickets, by which a session would be resumed: API servers and kube-scheduler
    keep none, and each connection of theirs would be sent two, with the client's certificate.
    """
    if client_authority is not None:  # `ssl` would parse whatever anybody shows
        return AskingContext(pair, client_authority)

    context = BoundedContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0  # of TLS 1.3
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION  # of TLS 1.2
    context.set_alpn_protocols(["http/1.1"])
    _load(context, pair)
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load the certificate and its key.

    The `ssl` module reads keys from files only: this one is in memory, so no disk has the key.
    """
    handle = linux_calls.memory_file("certificate")
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(pair.certificate + pair.key)

        context.load_cert_chain(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)
