"""The Secret of a Target changes, or the cluster behind its address: what becomes of the link.

The cluster that the controller runs in is an API server in memory; the targets are servers that
answer as one.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests import background
from tests.apiserver.server import APIServer
from tests.unit.targets.served_clusters import KEY, SECONDS, ServedCluster, until_health
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.api.identity import Identity
from vnode.cli import kubeconfigs
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.kube.endpoint import Trust
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister

NAMESPACE = KEY.namespace


class Source:
    """A cluster with a Target and its Secret; `added` and `removed` have the links."""

    def __init__(self, server: str) -> None:
        self.server = APIServer("c1", SystemClock())
        self.added = asyncio.Queue[Link]()
        self.removed: list[Link] = []
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})
        metadata = {"namespace": NAMESPACE, "name": "s"}
        secret = {"metadata": metadata, "type": "Opaque", "data": self._data(server, "t")}
        self.server.add(kinds.SECRETS, secret)
        metadata = {"namespace": NAMESPACE, "name": KEY.name}
        spec = {"kubeconfigSecret": {"name": "s"}}
        self.server.add(kinds.TARGETS, {"metadata": metadata, "spec": spec})

    @staticmethod
    def _data(server: str, token: str) -> dict[str, str]:
        text = kubeconfigs.build(ClusterEndpoint(server, None), token, NAMESPACE)
        return {"config": base64.b64encode(text).decode()}

    async def put(self, server: str, user: str = "t") -> None:
        """Write another kubeconfig into the Secret."""
        data = {"data": self._data(server, user)}
        await self.server.client().patch(kinds.SECRETS, "s", data, NAMESPACE)

    @asynccontextmanager
    async def connecting(self) -> AsyncIterator[None]:
        """Run the controller."""
        local, links, clock = self.server.client(), Links(), SystemClock()
        links.subscribe(self.added.put_nowait, self.removed.append)
        targets = TargetLister(local, limit=10)
        controller = TargetController(
            *(local, Identity("c1", "us"), targets, links),
            clock=clock,
            trust=lambda _key: Trust(),
        )
        async with background.running(targets.run(), controller.run()), asyncio.timeout(SECONDS):
            yield


async def test_another_address_of_the_cluster_costs_no_link() -> None:
    cluster = ServedCluster("a")
    async with (
        cluster.endpoint() as one,
        cluster.endpoint() as other,
    ):
        source = Source(one.url)
        async with source.connecting():
            link = await source.added.get()
            await until_health(link, "Connected")
            for endpoint in (other, one, other):
                moved = asyncio.Event()
                link.on_health(moved.set)
                await source.put(endpoint.url)
                await moved.wait()
                assert link.client.endpoint.url == endpoint.url

            assert source.added.empty()
            assert not source.removed


async def test_another_user_gets_a_new_link() -> None:
    cluster = ServedCluster("a")
    async with cluster.endpoint() as one:
        source = Source(one.url)
        async with source.connecting():
            first = await source.added.get()
            await until_health(first, "Connected")
            await source.put(one.url, "another")
            second = await source.added.get()
            await until_health(second, "Connected")
            assert source.removed == [first]


async def test_another_cluster_behind_the_same_address_is_connected_to_anew() -> None:
    """Its Target says which one it was, so that an operator has to confirm it."""
    cluster = ServedCluster("a")
    async with cluster.endpoint() as one:
        source = Source(one.url)
        async with source.connecting():
            await until_health(await source.added.get(), "Connected")
            cluster.become("b")
            await until_health(await source.added.get(), "OtherCluster")
