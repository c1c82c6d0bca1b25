"""A cluster in memory in which an agent is held to namespaces, and has rights in some of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests import background
from tests.apiserver.requests import APIRequest
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.api.kinds import Kind
from vnode.kube.informer import Informer
from vnode.kube.namespace_scope import NamespaceScope

DENIED = Denied(403, "Forbidden", "may not list")


class HeldCluster:
    """`client` is held to the namespaces of these names; `open_` makes some, with rights."""

    def __init__(self, clock: Clock, *names: str) -> None:
        self.clock = clock
        self.server = APIServer("server", clock)
        self.client = self.server.client()
        self.client.scope = NamespaceScope(names)
        self.opened: set[str] = set()
        for verb in ("list", "watch"):
            self.server.fail(DENIED, verb=verb, when=self._is_closed, times=None)

    def _is_closed(self, request: APIRequest) -> bool:
        kind = request.kind
        return kind is not None and kind.namespaced and request.namespace not in self.opened

    def open_(self, *names: str) -> None:
        """Make these namespaces, with rights in them."""
        for name in names:
            self.server.add(kinds.NAMESPACES, {"metadata": {"name": name}})
            self.opened.add(name)

    def close(self, name: str) -> None:
        """Make a namespace, and let nobody in."""
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": name}})
        self.opened.discard(name)

    def put(self, namespace: str, name: str) -> None:
        """Add a ConfigMap."""
        self.server.add(kinds.CONFIG_MAPS, {"metadata": {"name": name, "namespace": namespace}})

    def informer(self, kind: Kind = kinds.CONFIG_MAPS) -> Informer:
        """Return an informer of all namespaces."""
        return Informer(self.client, kind, clock=self.clock)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Informer]:
        """Run an informer of ConfigMaps; a second has passed inside."""
        informer = self.informer()
        async with background.running(informer.run()):
            await self.clock.sleep(1)
            yield informer
