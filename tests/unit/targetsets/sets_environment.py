"""A cluster with an inventory, sets, and virtual nodes with proxy pods; played in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests import background
from tests.apiserver.links import following
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.informer import Informer
from vnode.pods.source import proxy_state
from vnode.targets import finalizing
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.target_lister import TargetLister
from vnode.targetsets.controller import TargetSets

CRD: Object = {
    "metadata": {"name": "clusterprofiles.multicluster.x-k8s.io"},
    "spec": {"versions": [{"name": "v1alpha1", "served": True}]},
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}
ALL: Object = {"profiles": {"selector": {}}}


class TargetSetsEnvironment:
    """A cluster whose agent believes profiles of the namespaces `fleet` and `team`."""

    def __init__(self, clock: Clock, *profiles: str, served: bool = True) -> None:
        self.server = APIServer("c1", clock)
        self._clock = clock
        self.connects = True  # whether a Target is connected as soon as it is made
        if served:
            self.server.add(kinds.CRDS, CRD)

        for name in profiles:
            self.add_profile(name)

    def add_profile(
        self, name: str, namespace: str = "fleet", *, created: str = "", **labels: str
    ) -> None:
        metadata: Object = {"name": name, "namespace": namespace, "labels": labels}
        if created:
            metadata["creationTimestamp"] = created

        spec = {"clusterManager": {"name": "tests"}, "displayName": name}
        status = {"accessProviders": [{"name": "any", "cluster": {"server": f"https://{name}"}}]}
        self.server.add(
            kinds.CLUSTER_PROFILES, {"metadata": metadata, "spec": spec, "status": status}
        )

    def remove_profile(self, *names: str) -> None:
        for name in names:
            self.server.remove(kinds.CLUSTER_PROFILES, name, "fleet")

    def add_set(self, name: str = "all", spec: Object = ALL, namespace: str = "") -> None:
        kind = kinds.TARGET_SETS if namespace else kinds.CLUSTER_TARGET_SETS
        place = {"namespace": namespace} if namespace else {}
        self.server.add(kind, {"metadata": {"name": name, "generation": 1, **place}, "spec": spec})

    def change_set(self, **spec: Any) -> None:
        self.server.change(
            kinds.CLUSTER_TARGET_SETS, "all", "", lambda obj: obj["spec"].update(spec)
        )

    def confirm(self, generation: int = 1) -> None:
        def annotate(obj: Object) -> None:
            obj["metadata"]["annotations"] = {keys.CONFIRM_REMOVAL: str(generation)}

        self.server.change(kinds.CLUSTER_TARGET_SETS, "all", "", annotate)

    def add_node(self, target: str, **spec: Any) -> None:
        self.server.add(
            kinds.NODES, {"metadata": {"name": TargetKey("", target).node_name}, "spec": spec}
        )

    def add_pods(
        self,
        target: str,
        count: int,
        owner: str = "ReplicaSet",
        scheduler: str = keys.PROXY_SCHEDULER,
    ) -> None:
        for number in range(count):
            reference = {"kind": owner, "name": "web", "uid": "web", "controller": True}
            metadata = {
                "name": f"{target}-{owner.lower()}-{number}",
                "ownerReferences": [reference],
            }
            node = TargetKey("", target).node_name
            spec = {
                "nodeName": node,
                "schedulerName": scheduler,
                "terminationGracePeriodSeconds": 0,
                "containers": [],
            }
            self.server.add(kinds.PODS, {"metadata": metadata, "spec": spec})

    def set(self, name: str = "all", namespace: str = "") -> Object:
        kind = kinds.TARGET_SETS if namespace else kinds.CLUSTER_TARGET_SETS
        return self.server.find(kind, name, namespace) or {}

    def state(
        self, type_: str = "Ready", name: str = "all", namespace: str = ""
    ) -> tuple[str, str]:
        condition = objects.condition(self.set(name, namespace), type_) or {}
        return condition.get("status", ""), condition.get("reason", "")

    def message(self, type_: str = "Ready") -> str:
        return str((objects.condition(self.set(), type_) or {}).get("message"))

    def reasons(self, name: str = "all") -> dict[str, str]:
        listed = objects.status(self.set(name)).get("targets") or ()
        return {entry["profile"]: entry["reason"] for entry in listed}

    def targets(self) -> list[str]:
        return [objects.name(target) for target in self.server.all(kinds.CLUSTER_TARGETS)]

    def target(self, name: str) -> Object:
        return self.server.find(kinds.CLUSTER_TARGETS, name) or {}

    def node(self, target: str) -> Object:
        return self.server.find(kinds.NODES, TargetKey("", target).node_name) or {}

    def is_cordoned(self, target: str) -> bool:
        return bool(objects.spec(self.node(target)).get("unschedulable"))

    def pods(self, target: str) -> int:
        node = TargetKey("", target).node_name
        return sum(objects.node_name(pod) == node for pod in self.server.all(kinds.PODS))

    def make_ready(self, *names: str) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "Connected", "message": ""}

        def report(obj: Object) -> None:
            obj.setdefault("status", {})["conditions"] = [ready]

        for name in names:
            self.server.change(kinds.CLUSTER_TARGETS, name, "", report)

    def connect(self, name: str) -> None:
        def report(obj: Object) -> None:
            obj.setdefault("status", {})["clusterUID"] = f"uid-{name}"

        self.server.change(kinds.CLUSTER_TARGETS, name, "", report)

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        if self.connects and old is None and new is not None:
            self.connect(objects.name(new))

        if new is not None and finalizing.is_due(new):
            self.server.remove(kinds.CLUSTER_TARGETS, objects.name(new))  # its cluster is clean

    @asynccontextmanager
    async def leading(self, *namespaces: str) -> AsyncIterator[TargetSets]:
        client = self.server.client("agent")
        lister, nodes = TargetLister(client), Informer(client, kinds.NODES)
        lister.informers[1].subscribe(self._on_target)
        proxies = Informer(
            client,
            kinds.PODS,
            field_selector=f"spec.schedulerName={keys.PROXY_SCHEDULER}",
            trim=proxy_state.trim,
            indexes=proxy_state.INDEXES,
        )
        config = InventoryConfig(namespaces or ("fleet", "team"))
        sets = TargetSets(
            client,
            lister,
            nodes,
            proxies.subscribe,
            lambda node: proxies.store.by_index(proxy_state.NODE_INDEX, node),
            config,
            self._clock,
        )
        async with following(*lister.informers, nodes, proxies), background.running(sets.run()):
            await asyncio.sleep(2)
            yield sets
