"""Targets that are reached by HTTP, and connections to them.

A cluster behind an address may become another: it is another API server then, to which the address
leads. Watches that are open end, and what they have seen is too old for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.apiserver import status
from tests.apiserver.http_server import HTTPServer
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, names
from vnode.api.clock import SystemClock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.credentials import Constant
from vnode.kube.endpoint import Endpoint
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets.cluster_identity import Expected
from vnode.targets.connection import Connection
from vnode.targets.model import SecretReference, TargetSpec

KEY = TargetKey("team", "c2")
SPEC = TargetSpec(KEY, SecretReference("team", "s", "config", ""), "")
SECONDS = 10


def summary(uid: str | None = None) -> Object:
    """Build the ClusterSummary of a cluster that says who it is, unless that is None."""
    annotations = {} if uid is None else {keys.CLUSTER_UID: uid}
    metadata = {
        "name": keys.SUMMARY_NAME,
        "uid": "s",
        "resourceVersion": "1",
        "annotations": annotations,
    }
    return {"metadata": metadata, "capacity": {}, "allocatable": {}}


def chaperon(pod: str) -> Object:
    """Build the chaperon of a pod in `team` that the source `us` has sent."""
    metadata = {
        "name": names.chaperon(pod, f"of-{pod}"),
        "namespace": "team",
        "labels": {keys.PARENT_UID: f"of-{pod}", keys.PARENT_CLUSTER_NAME: "c1"},
        "annotations": {keys.PARENT_CLUSTER_UID: "us", keys.TARGET: str(KEY)},
    }
    return {"metadata": metadata, "spec": {"containers": []}}


class ServedCluster:
    """A cluster that says that it is `uid`; its namespace kube-system cannot be read."""

    def __init__(self, uid: str, *chaperons: Object) -> None:
        self.asked_for_uid = asyncio.Event()
        self.on_request: Callable[[str], None] = lambda _user: None
        self._http_servers: list[HTTPServer] = []
        self.server = _api_server(uid, chaperons)

    def become(self, uid: str, *chaperons: Object) -> None:
        """Have another cluster answer at all addresses."""
        before, self.server = self.server, _api_server(uid, chaperons)
        self.asked_for_uid.clear()
        for http_server in self._http_servers:
            http_server.server = self.server

        for watch in before.watches():
            watch.expire(status.expired("too old resource version"))

    @property
    def asked(self) -> list[tuple[str, str]]:
        """What was asked of the present cluster: methods, and the last parts of paths."""
        requests = self.server.requests
        return [(each.method, each.path.rpartition("/")[2]) for each in requests]

    @property
    def followed(self) -> list[tuple[str, str]]:
        """What was asked of it beyond who it is."""
        return [asked for asked in self.asked if asked != ("GET", keys.SUMMARY_NAME)]

    @asynccontextmanager
    async def endpoint(self, users: dict[str, str] | None = None) -> AsyncIterator[Endpoint]:
        """Serve the cluster at an address of its own."""
        http_server = HTTPServer(self.server, users, self._on_request)
        self._http_servers.append(http_server)
        await http_server.start()
        try:
            yield Endpoint(http_server.url, None, Constant("Bearer secret"))
        finally:
            self._http_servers.remove(http_server)
            await http_server.stop()

    def _on_request(self, _server: str, user: str, method: str, path: str) -> None:
        self.on_request(user)
        if method == "GET" and path.endswith(f"/{keys.SUMMARY_NAME}"):
            self.asked_for_uid.set()


def _api_server(uid: str, chaperons: tuple[Object, ...]) -> APIServer:
    server = APIServer("c2", SystemClock())
    server.remove(kinds.NAMESPACES, "kube-system")
    server.add(kinds.NAMESPACES, {"metadata": {"name": "team"}})
    server.add(kinds.CLUSTER_SUMMARIES, summary(uid))
    for each in chaperons:
        server.add(kinds.POD_CHAPERONS, each)

    return server


@asynccontextmanager
async def connected(
    cluster: ServedCluster, expected: Expected, spec: TargetSpec = SPEC
) -> AsyncIterator[tuple[Connection, asyncio.Queue[Link], asyncio.Task[None]]]:
    """Run a connection to the cluster, again as a controller does; yield its links as they come."""
    links, added = Links(), asyncio.Queue[Link]()
    links.subscribe(added.put_nowait, lambda _link: None)

    async def run(connection: Connection) -> None:
        while not connection.leaving:
            await connection.run()

    async with cluster.endpoint() as where, asyncio.timeout(SECONDS):
        connection = Connection(
            spec,
            where,
            identity=Identity("c1", "us"),
            links=links,
            clock=SystemClock(),
            expected=lambda: expected,
            on_cluster=lambda _uid: None,
            on_name_conflicts=lambda: None,
        )
        running = asyncio.create_task(run(connection))
        try:
            yield connection, added, running
        finally:
            running.cancel()
            await asyncio.wait([running])


async def until_health(link: Link, reason: str) -> None:
    """Wait until the link is well or ill for that reason."""
    heard = asyncio.Event()
    link.on_health(lambda: heard.set() if link.health.reason == reason else None)
    if link.health.reason != reason:
        await heard.wait()
