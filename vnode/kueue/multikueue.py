"""Keeps MultiKueueClusters and MultiKueueConfigs, for teams that have Kueue send whole Jobs away.

What is wanted comes of the agent's configuration, of Targets, sets and decisions; what is there is
watched, while Kueue's kinds are served; `multikueue_deciding` compares both. A cluster leaves its
config first, and goes when no Workload is there any more. Credentials are not written here: a
MultiKueueCluster names a Secret or a ClusterProfile in Kueue's namespace, and Kueue itself says
in its status what it lacks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kueue import multikueue_deciding as deciding
from vnode.kueue.multikueue_deciding import MultiKueuePlan, WorkerCluster
from vnode.runtime.controller import Controller
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_informer import ServedInformer
from vnode.runtime.supervisor import supervise
from vnode.telemetry import audit

REORDERED: Final = 60.0
"""Seconds between two writes of an order alone."""
_USED: Final = 30.0  # seconds until it is asked again whether a cluster has no work left
_ALL: Final = "all"  # the only key of the queue

log = logging.getLogger(__name__)


class MultiKueueSetup:
    """Keeps them for one term of a leader.

    `wanted` returns the clusters of each config by its name, None for one of which they are not
    known now; `subscribe` is called with these tasks and what to call when they may be others.
    """

    def __init__(
        self,
        client: Client,
        wanted: Callable[[], Mapping[str, Sequence[WorkerCluster] | None]],
        subscribe: Callable[[KeyedTasks[str], Callable[[], None]], None],
        clock: Clock,
    ) -> None:
        self._client = client
        self._wanted = wanted
        self._subscribe = subscribe
        self._clock = clock
        self._controller: Controller[str] = Controller(
            "multikueue", self._reconcile, subject=audit.agent, workers=1
        )
        self._configs = ServedInformer(client, kinds.MULTIKUEUE_CONFIGS, self._on_change)
        self._clusters = ServedInformer(client, kinds.MULTIKUEUE_CLUSTERS, self._on_change)
        self._ordered: dict[str, float] = {}  # when (monotonic) a config was written last
        self._told: set[str] = set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with supervise() as tasks:
            keyed: KeyedTasks[str] = tasks.keyed()
            self._configs.watch(keyed)
            self._clusters.watch(keyed)
            self._subscribe(keyed, lambda: self._controller.add(_ALL))
            await self._controller.run()

    def _on_change(self, _old: Object | None, _new: Object | None) -> None:
        self._controller.add(_ALL)

    async def _reconcile(self, _key: str) -> float | None:
        both = (self._configs, self._clusters)
        if not all(each.is_known and each.is_served for each in both):
            return None  # what is known of them wakes this

        wanted = self._wanted()
        plan = deciding.plan(wanted, _by_name(self._configs), _by_name(self._clusters))
        self._tell(plan)
        for cluster in plan.new_clusters:
            await self._create(kinds.MULTIKUEUE_CLUSTERS, cluster)

        for obj, patch in plan.changed_clusters:
            await self._patch(kinds.MULTIKUEUE_CLUSTERS, obj, patch)

        waits = [await self._write_configs(plan)]
        for config in plan.old_configs:
            log.info("deleting MultiKueueConfig %s", objects.name(config))
            await self._client.discard(kinds.MULTIKUEUE_CONFIGS, config)

        waits.append(await self._remove_clusters(plan.old_clusters))
        return min((wait for wait in waits if wait is not None), default=None)

    async def _write_configs(self, plan: MultiKueuePlan) -> float | None:
        """Write those that are others; return when an order that has to wait may be written."""
        now, due = self._clock.monotonic(), list[float]()
        for config in plan.new_configs:
            self._ordered[objects.name(config)] = now
            await self._create(kinds.MULTIKUEUE_CONFIGS, config)

        for obj, patch in plan.changed_configs:
            name = objects.name(obj)
            wait = self._ordered.get(name, now - REORDERED) + REORDERED - now
            if wait > 0 and deciding.is_reordering(obj, patch):
                due.append(wait)
                continue

            self._ordered[name] = now
            log.info("MultiKueueConfig %s: %s", name, ", ".join(patch["spec"]["clusters"]))
            await self._patch(kinds.MULTIKUEUE_CONFIGS, obj, patch)

        return min(due, default=None)

    async def _remove_clusters(self, clusters: list[Object]) -> float | None:
        """Delete those that no config names, unless Workloads are there."""
        if not clusters:
            return None

        used = deciding.with_work(clusters, await self._client.list(kinds.WORKLOADS))
        for cluster in clusters:
            if cluster not in used:
                log.info("deleting MultiKueueCluster %s", objects.name(cluster))
                await self._client.discard(kinds.MULTIKUEUE_CLUSTERS, cluster)

        return _USED if used else None

    async def _create(self, kind: Kind, body: Object) -> None:
        log.info("creating %s %s", kind.kind, objects.name(body))
        try:
            await self._client.create(kind, body)
        except AlreadyExists:
            log.debug("%s %s is there already", kind.kind, objects.name(body))

    async def _patch(self, kind: Kind, obj: Object, patch: Object) -> None:
        await self._client.patch(kind, objects.name(obj), objects.if_unchanged(patch, obj))

    def _tell(self, plan: MultiKueuePlan) -> None:
        """Tell once what cannot be done, and the cure."""
        said = {
            f"MultiKueueConfig {name} is not vnode's, and is left as it is: delete it, or give the "
            "entry of kueue.multiKueue another name"
            for name in plan.foreign
        }
        for name, more in plan.left_out.items():
            most = deciding.MOST
            said.add(
                f"MultiKueueConfig {name} names the first {most} clusters, as Kueue takes no more; "
                f"left out: {_listed(more)}"
            )

        for text in sorted(said - self._told):
            log.warning("%s", text)

        self._told = said


def _by_name(informer: ServedInformer) -> dict[str, Object]:
    return {objects.name(obj): obj for obj in informer.values()}


def _listed(names: Iterable[str], most: int = 5) -> str:
    found = list(names)
    rest = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + rest
