"""`exec`, `attach`, `portForward`: the upgrade is passed on to the target, then bytes are copied.

No SPDY or WebSocket is spoken here. The request is re-addressed to the delegate, the target's 101
is repeated to the caller, and the two connections are joined.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterable
from typing import Final

from aiohttp import web

from vnode.api.errors import VnodeError
from vnode.kubelet import queries, target_errors
from vnode.kubelet.delegates import Delegate, ServedNode
from vnode.kubelet.refusal import Refused
from vnode.kubelet.streams import http_upgrade, sockets, upstream
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.tunnel import Tunnel

SWITCHING_PROTOCOLS: Final = 101

log = logging.getLogger(__name__)


class Streams:
    """The streaming routes of all virtual nodes of this process."""

    def __init__(self, hangups: DisconnectWatch) -> None:
        self._hangups = hangups

    async def execute(self, node: ServedNode, request: web.Request) -> web.StreamResponse:
        """`exec`."""
        query = queries.execute(list(request.query.items()), request.match_info["container"])
        return await self._serve(node, request, "exec", query)

    async def attach(self, node: ServedNode, request: web.Request) -> web.StreamResponse:
        """`attach`."""
        query = queries.attach(list(request.query.items()), request.match_info["container"])
        return await self._serve(node, request, "attach", query)

    async def port_forward(self, node: ServedNode, request: web.Request) -> web.StreamResponse:
        """`portForward`."""
        query = queries.port_forward(list(request.query.items()))
        return await self._serve(node, request, "portforward", query)

    async def _serve(
        self,
        node: ServedNode,
        request: web.Request,
        subresource: str,
        query: Iterable[tuple[str, str]],
    ) -> web.StreamResponse:
        where = request.match_info
        pod = await node.pod(where["namespace"], where["pod"], where.get("uid", ""))
        if not http_upgrade.wanted(request.headers.items()):
            raise Refused(400, "Upgrade request required")

        delegate = node.delegate(pod)
        try:
            return await self._join(delegate, request, subresource, query)
        except TimeoutError as error:
            raise Refused(504, f"target {delegate.client.name} does not answer") from error
        except ssl.SSLCertVerificationError as error:
            raise Refused(
                502, f"the certificate of target {delegate.client.name} is not trusted: {error}"
            ) from error
        except OSError as error:
            raise Refused(
                502, f"target {delegate.client.name} cannot be reached: {error}"
            ) from error
        except VnodeError as error:
            if isinstance(error, Refused):
                raise

            raise Refused(502, f"no credentials for target {delegate.client.name}") from error

    async def _join(
        self,
        delegate: Delegate,
        request: web.Request,
        subresource: str,
        query: Iterable[tuple[str, str]],
    ) -> web.StreamResponse:
        async with upstream.opened(
            delegate.client,
            request.method,
            delegate.path(subresource),
            query,
            request.headers.items(),
        ) as remote:
            answer = await remote.answer()
            if answer.status != SWITCHING_PROTOCOLS:
                body = await remote.body(answer)
                raise target_errors.refusal(delegate.client.name, answer, body)

            # The target may have said all and left by now. A caller who does not hear it asks
            # again, and the command would run twice.
            caller = request.transport
            if caller is None or caller.is_closing():
                return _Taken(status=SWITCHING_PROTOCOLS)

            tunnel = Tunnel(caller, remote.transport, self._hangups)
            caller.write(http_upgrade.switching(answer) + bytes(remote.rest))
            tunnel.start()
            remote.hand_over(tunnel.target)
            return await _until_closed(tunnel, request)


async def _until_closed(tunnel: Tunnel, request: web.Request) -> web.StreamResponse:
    sockets.keep_alive(tunnel.client.transport)
    try:
        await tunnel.closed.wait()
    finally:
        tunnel.close()
        await tunnel.closed.wait()  # within seconds: `close` sees to it
        # The server's own protocol was set aside, and still has to hear that its connection ended.
        request.protocol.connection_lost(None)

    return _Taken(status=SWITCHING_PROTOCOLS)


class _Taken(web.StreamResponse):
    """Stands for an answer that was given on the bare connection: nothing is left to send."""

    async def prepare(self, request: web.BaseRequest) -> None:
        """There is nothing to prepare."""

    async def write_eof(self, data: bytes = b"") -> None:
        """There is nothing to end."""
