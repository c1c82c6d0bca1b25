"""Serves the kubelet API of all virtual nodes of this process: a port for each that has a link.

A link may be replaced by another one (new credentials), so a port is closed only some time after
its link was removed. The node controller records the port on its Node, and it is used again after
a restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from vnode.api.clock import Clock, SystemClock, happens_within
from vnode.api.errors import ConfigError, VnodeError
from vnode.api.listeners import Listeners
from vnode.kube.client import Client
from vnode.kubelet import listener
from vnode.kubelet.auth import client_ca
from vnode.kubelet.auth.authentication import Authenticator
from vnode.kubelet.auth.authorization import Authorizer
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.delegates import FindPod, ListPods, ServedNode
from vnode.kubelet.listener import Listener
from vnode.kubelet.routes import Routes
from vnode.kubelet.stream_openings import StreamOpenings
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.routes import Streams
from vnode.runtime import supervisor
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.connections import UnauthenticatedConnections
from vnode.runtime.link import Link
from vnode.runtime.links import Links

FIRST_PORT: Final = 10250
STREAM_GRACE: Final = 20
"""Seconds that open streams get by default when their port closes."""
_LINGER: Final = 30.0  # seconds that a port stays open after its link was removed
_RETRY: Final = 5.0  # seconds until another attempt to open a port

log = logging.getLogger(__name__)


class KubeletServer:
    """Serves every virtual node in `links` on `address`.

    `certificate` returns the present serving certificate. `recorded_ports` returns, by node, the
    ports that nodes had before: no other node gets them, even if its link comes first. When a port
    closes, its open streams still get `grace` seconds, or `last_grace()` once `run` is cancelled.
    """

    def __init__(
        self,
        links: Links,
        client: Client,
        *,
        address: str,
        certificate: Callable[[], Pair],
        find_pod: FindPod,
        list_pods: ListPods | None = None,
        recorded_ports: Callable[[], Mapping[str, int]] = dict,
        first_port: int = FIRST_PORT,
        client_ca_file: Path | None = None,
        grace: float = STREAM_GRACE,
        last_grace: Callable[[], float] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._links = links
        self._address = address
        self._certificate = certificate
        self._find_pod = find_pod
        self._list_pods = list_pods
        self._recorded_ports = recorded_ports
        self._first_port = first_port
        self._grace = grace
        self._last_grace = last_grace or (lambda: grace)
        self._clock: Clock = clock or SystemClock()
        self._authorities = client_ca.ClientAuthorities(client, client_ca_file, clock)
        self._unauthenticated = UnauthenticatedConnections()
        self._gate = Gate(
            lambda: self._authorities.certificates,
            Authenticator(client, clock),
            Authorizer(client, clock),
            self._clock,
        )
        self._openings = StreamOpenings(self._clock)
        self._listeners: dict[str, Listener] = {}  # by node; only those that accept connections
        self._unlinked: dict[str, float] = {}  # node without a link -> since when (monotonic)
        self._subscribers: Listeners[str] = Listeners()
        self._wake = asyncio.Event()
        self._context: AskingContext | None = None  # of all ports; made with the first

    def port_of(self, node_name: str) -> int | None:
        """Return the port of a virtual node, None while it is not served."""
        served = self._listeners.get(node_name)
        return served.port if served else None

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed(node_name)` when `port_of` of that node changes. Must not await."""
        self._subscribers.add(changed)

    def renew(self) -> None:
        """Use the present serving certificate for new connections; call it after a renewal."""
        if self._context is None:
            return

        try:
            self._context.set_certificate(self._certificate())
        except ConfigError as error:
            log.warning("the kubelet API keeps its former certificate: %s", error)

    async def run(self) -> None:
        """Serve until cancelled, then let open streams end within the grace."""
        disconnects = DisconnectWatch()
        streams = Streams(disconnects, self._clock)
        self._links.subscribe(self._link_changed, self._link_changed)
        try:
            async with supervisor.supervise() as tasks:
                tasks.start(self._authorities.run(), "kubelet-client-ca")
                await self._authorities.wait()
                while True:
                    self._wake.clear()
                    await happens_within(self._wake, await self._reconcile(streams))
        finally:
            await self._close(list(self._listeners), self._last_grace())
            disconnects.close()

    def _link_changed(self, _link: Link) -> None:
        self._wake.set()

    async def _reconcile(self, streams: Streams) -> float | None:
        """Make listeners match links; return the seconds until the next call, None if woken."""
        linked = {link.node_name for link in self._links}
        await self._close(self._expired(linked), self._grace)
        missing = linked - self._listeners.keys()
        opened = [await self._open(node, streams) for node in sorted(missing)]
        return _RETRY if not all(opened) else _LINGER if self._unlinked else None

    def _expired(self, linked: set[str]) -> list[str]:
        now = self._clock.monotonic()
        for node in self._listeners:
            if node in linked:
                self._unlinked.pop(node, None)
            else:
                self._unlinked.setdefault(node, now)

        return [node for node, since in self._unlinked.items() if now - since >= _LINGER]

    async def _open(self, node: str, streams: Streams) -> bool:
        routes = Routes(
            ServedNode(node, self._links, self._find_pod, self._list_pods),
            self._gate,
            streams,
            openings=self._openings,
            on_authorized=self._unauthenticated.on_authorized,
        )
        recorded = dict(self._recorded_ports())
        wanted = recorded.pop(node, None)
        used = {served.port for served in self._listeners.values()} | set(recorded.values())
        try:
            listening = listener.bind(self._address, self._first_port, wanted, used)
            served = Listener(routes, listening, self._tls(), self._unauthenticated)
            try:
                await served.start()
            except BaseException:
                await served.close(0)
                raise
        except (OSError, VnodeError) as error:
            log.warning("cannot serve the kubelet API of %s: %s", node, error)
            return False
        except Exception:  # must not stop the servers of all other nodes
            log.exception("cannot serve the kubelet API of %s", node)
            return False

        self._listeners[node] = served
        log.info("kubelet API of %s on %s port %d", node, self._address, served.port)
        if wanted is not None and served.port != wanted:
            log.warning("port %d, which %s had before, is already in use", wanted, node)

        self._subscribers.call(node)
        return True

    async def _close(self, nodes: list[str], grace: float) -> None:
        closing = [(node, self._listeners.pop(node)) for node in nodes]
        async with asyncio.TaskGroup() as group:
            for node, served in closing:
                self._unlinked.pop(node, None)
                self._subscribers.call(node)
                group.create_task(served.close(grace), name=f"kubelet-close-{node}")

    def _tls(self) -> AskingContext:
        if self._context is None:
            self._context = AskingContext(self._certificate())

        return self._context
