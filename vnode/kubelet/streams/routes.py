"""Serves `exec`, `attach`, `portForward`: passes the upgrade on to the target, then copies bytes.

Nothing here parses SPDY or WebSocket. The request is sent on to the delegate, the target's 101 is
repeated to the caller, and the two connections are joined.
"""

from __future__ import annotations

import logging
import ssl
from typing import Final

from aiohttp import web

from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import VnodeError
from vnode.kube import tls_records
from vnode.kube.tls_records import RecordBudgets
from vnode.kubelet import queries, target_errors
from vnode.kubelet.delegates import Delegate, ServedNode, audit_stream
from vnode.kubelet.refusal import Refused
from vnode.kubelet.stream_openings import BUFFERED
from vnode.kubelet.streams import http_upgrade, sockets, upstream
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.pace import StreamPaces
from vnode.kubelet.streams.tunnel import Tunnel

SWITCHING_PROTOCOLS: Final = 101

log = logging.getLogger(__name__)


class Streams:
    """Handles the streaming routes of all virtual nodes of this process."""

    def __init__(self, disconnects: DisconnectWatch, clock: Clock | None = None) -> None:
        self._disconnects = disconnects
        self.paces = StreamPaces(clock or SystemClock())
        # By namespace: the streams of all come from the API server's address.
        self._records = RecordBudgets()

    async def execute(self, node: ServedNode, request: web.Request) -> web.StreamResponse:
        """Handle `exec`."""
        query = queries.execute(_raw_query(request), request.match_info["container"])
        return await self._serve(node, request, "exec", query)

    async def attach(self, node: ServedNode, request: web.Request) -> web.StreamResponse:
        """Handle `attach`."""
        query = queries.attach(_raw_query(request), request.match_info["container"])
        return await self._serve(node, request, "attach", query)

    async def port_forward(self, node: ServedNode, request: web.Request) -> web.StreamResponse:
        """Handle `portForward`."""
        query = queries.port_forward(_raw_query(request))
        return await self._serve(node, request, "portforward", query)

    async def _serve(
        self,
        node: ServedNode,
        request: web.Request,
        subresource: str,
        query: str,
    ) -> web.StreamResponse:
        path = request.match_info
        pod = await node.pod(path["namespace"], path["pod"], path.get("uid", ""))
        if not http_upgrade.is_requested(request.headers.items()):
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
        query: str,
    ) -> web.StreamResponse:
        """Join the caller and the target; a second time if only the credentials were refused."""
        joined = await self._try_to_join(delegate, request, subresource, query, again=True)
        if joined is None:
            joined = await self._try_to_join(delegate, request, subresource, query, again=False)

        assert joined is not None, "a second refusal is raised"
        return joined

    async def _try_to_join(
        self,
        delegate: Delegate,
        request: web.Request,
        subresource: str,
        query: str,
        *,
        again: bool,
    ) -> web.StreamResponse | None:
        """Join them; None, if `again` is possible, once there are other credentials."""
        async with upstream.connect(
            delegate.client,
            request.method,
            delegate.path(subresource),
            query,
            request.headers.items(),
        ) as remote:
            answer = await remote.answer()
            if again and await delegate.client.renew(answer.status, remote.authorization):
                return None

            if answer.status != SWITCHING_PROTOCOLS:
                body = await remote.body(answer)
                raise target_errors.refusal(delegate.client.name, answer.status, body)

            length = queries.command_length(query)
            audit_stream(delegate, subresource, request.match_info.get("container", ""), length)
            # The target may have sent everything and closed by now. A caller that misses it asks
            # again, and the command would run twice.
            caller = request.transport
            if caller is None or caller.is_closing():
                return _Answered(status=SWITCHING_PROTOCOLS)

            namespace = request.match_info["namespace"]
            pace = self.paces.of(namespace)
            tls_records.keep_pace(
                caller, self._records.of(namespace), f"who has a stream of namespace {namespace}"
            )
            tunnel = Tunnel(caller, remote.transport, self._disconnects, pace, request[BUFFERED])
            caller.write(http_upgrade.switching_protocols(answer) + bytes(remote.rest))
            tunnel.start()
            remote.hand_over(tunnel.target)
            return await _until_closed(tunnel, request)


def _raw_query(request: web.Request) -> str:
    return request.rel_url.raw_query_string


async def _until_closed(tunnel: Tunnel, request: web.Request) -> web.StreamResponse:
    sockets.keep_alive(tunnel.client.transport)
    try:
        await tunnel.closed.wait()
    finally:
        tunnel.close()
        await tunnel.closed.wait()  # `close` ends it within seconds
        # The tunnel replaced the server's own protocol, which has to be notified of the end.
        request.protocol.connection_lost(None)

    return _Answered(status=SWITCHING_PROTOCOLS)


class _Answered(web.StreamResponse):
    """Stands for an answer that was sent on the bare connection."""

    async def prepare(self, request: web.BaseRequest) -> None:
        """Send nothing: the answer was sent already."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Send nothing: the answer was sent already."""
