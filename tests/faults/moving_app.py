"""An application that moves between two clusters, and what watches show of it meanwhile.

A Deployment with a disruption budget and a StatefulSet, whose pods use a ConfigMap and a Secret,
and a Service. While they move, enough of the Deployment must be ready, no pod may run twice, and
what pods use must be there before they run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tests import background, kit
from tests.faults.history import History, Suspicion
from vnode.api import keys, kinds, objects
from vnode.api.errors import NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

REPLICAS = 20
MAX_UNAVAILABLE = 6
MEMBERS = 3  # of the StatefulSet
ALL = REPLICAS + MEMBERS
LABEL = "app in (shop,members)"
USED = (kinds.CONFIG_MAPS, kinds.SECRETS)
COPIED = (*USED, kinds.SERVICES)
BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)


def _template(name: str) -> Object:
    pod = kit.pod(name)
    pod["spec"]["containers"][0]["envFrom"] = [
        {"configMapRef": {"name": "shop"}},
        {"secretRef": {"name": "shop"}},
    ]
    return pod


async def create(source: Client) -> None:
    """Create the application in namespace default."""
    for kind in USED:
        await source.create(kind, {"metadata": {"name": "shop"}}, "default")

    service = {"selector": {"app": "shop"}, "ports": [{"port": 80}]}
    await source.create(kinds.SERVICES, {"metadata": {"name": "shop"}, "spec": service}, "default")
    budget = {"maxUnavailable": MAX_UNAVAILABLE, "selector": {"matchLabels": {"app": "shop"}}}
    await source.create(BUDGETS, {"metadata": {"name": "shop"}, "spec": budget}, "default")
    shop = kit.deployment("shop", REPLICAS, _template("shop"))
    await source.create(kinds.DEPLOYMENTS, shop, "default")
    members = kit.deployment("members", MEMBERS, _template("members"))
    members |= {"kind": kinds.STATEFUL_SETS.kind}
    members["spec"] |= {"serviceName": "members", "podManagementPolicy": "Parallel"}
    await source.create(kinds.STATEFUL_SETS, members, "default")


async def wake_controllers(source: Client) -> None:
    """Have the controllers of the application look at it again, once pods can be created.

    Each pod that ends while no webhook answers costs its controller a failed attempt, and each of
    these doubles the wait of the next one, up to 1,000 s: a change ends that (docs/reliability.md).
    """
    body = {"metadata": {"annotations": {"tests/woken-at": str(time.monotonic())}}}
    for kind in (kinds.REPLICA_SETS, kinds.STATEFUL_SETS):
        for found in await source.list(kind, "default"):
            await source.patch(kind, objects.name(found), body, "default")


async def until_run(source: Client, node: str) -> dict[str, Object]:
    """Wait until all pods run on a virtual node, and none is elsewhere."""

    def there(found: dict[str, Object]) -> bool:
        return kit.running(found, ALL) and {objects.node_name(p) for p in found.values()} == {node}

    return await kit.until(
        *(source, kinds.PODS, there),
        namespace="default",
        label_selector=LABEL,
    )


class SeenMoves:
    """What has been seen of the application since the watches began."""

    def __init__(self, source: Client, clusters: Mapping[str, Client]) -> None:
        self.ready: list[int] = []  # pods of the Deployment, after each change
        self._clusters = clusters
        self._history = History()
        self._suspicions: asyncio.Queue[Suspicion] = asyncio.Queue()
        self._began: dict[str, int] = {}  # cluster -> revision of the first pod that ran there
        self._copied: dict[tuple[str, str], int] = {}  # cluster and kind -> revision of the copy
        self._pods = Informer(source, kinds.PODS, namespace="default", label_selector="app=shop")
        self._pods.subscribe(lambda _old, _new: self._count())
        self._informers = [self._pods]
        for name, client in clusters.items():
            self._follow(name, client)

    def _follow(self, name: str, client: Client) -> None:
        for kind in (kinds.PODS, *COPIED):
            informer = Informer(
                client, kind, namespace="default", label_selector=keys.PARENT_CLUSTER_NAME
            )
            if kind == kinds.PODS:
                informer.subscribe(lambda old, new: self._on_delegate(name, old, new))
            else:
                key = (name, kind.plural)
                informer.subscribe(lambda old, new, key=key: self._on_copy(key, old, new))

            self._informers.append(informer)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Watch for as long as the block lasts."""
        runs = [informer.run() for informer in self._informers]
        async with background.running(*runs, self._confirm()):
            for informer in self._informers:
                await informer.synced.wait()

            yield

    def _count(self) -> None:
        if self._pods.synced.is_set():
            pods = self._pods.store.values()
            self.ready.append(
                sum(kit.is_ready(pod) and not objects.is_terminating(pod) for pod in pods)
            )

    def _on_delegate(self, cluster: str, old: Object | None, new: Object | None) -> None:
        for suspicion in self._history.on_delegate(cluster, old, new):
            self._suspicions.put_nowait(suspicion)

        if new is not None and kit.phase(new) == "Running":
            self._began.setdefault(cluster, int(objects.resource_version(new)))

    def _on_copy(self, key: tuple[str, str], old: Object | None, new: Object | None) -> None:
        if old is None and new is not None:
            self._copied[key] = int(objects.resource_version(new))

    async def _confirm(self) -> None:
        while True:
            suspicion = await self._suspicions.get()
            earlier = suspicion.earlier
            namespace, name = objects.split_key(earlier.key)
            try:
                pod = await self._clusters[earlier.cluster].get(kinds.PODS, name, namespace)
            except NotFound:
                continue

            if objects.uid(pod) == earlier.uid:
                self._history.confirm(suspicion)

    def check(self, new: str, *kinds_before: Kind) -> None:
        """See that enough was ready, nothing ran twice, and copies of these kinds came first."""
        assert not self._history.violations
        assert min(self.ready) >= REPLICAS - MAX_UNAVAILABLE
        for kind in kinds_before:
            assert self._copied[new, kind.plural] < self._began[new], kind.plural


async def until_nothing_stays(former: Client) -> None:
    """Wait until no chaperon, delegate or copy is left in a cluster."""
    for kind in (kinds.POD_CHAPERONS, kinds.PODS, *kinds.FOLLOWING):
        if kind not in kinds.FOLLOWING_BY_EXTRA_ROLE:
            selector = keys.PARENT_CLUSTER_NAME
            await kit.until_gone(former, kind, "default", label_selector=selector)
