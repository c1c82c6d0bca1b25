"""A source with Targets, virtual nodes, pods and policies, whose policies are kept and reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.apiserver.links import link_to
from tests.apiserver.server import APIServer
from tests.unit.placement.indexed import Nobody, indexed
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.listeners import subscription_scope
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.nodes import controller as nodes
from vnode.nodes import virtual
from vnode.placement.decisions.publisher import DecisionPublisher
from vnode.placement.policies.collection import PlacementPolicies
from vnode.placement.status.accounting import ClosedClusters
from vnode.placement.status.controller import PolicyStatusController
from vnode.pods.source import proxy_state
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets.target_lister import TargetLister

SETTLED = 20.0
"""Seconds after which everything is written."""
US = Identity("c1", "uid-of-c1")


def node_of(cluster: str) -> str:
    """Return the virtual node of a ClusterTarget."""
    return names.virtual_node("", cluster)


class PlacementEnvironment:
    """The source; `running` watches and reports, as a leader does."""

    def __init__(self, clock: Clock, *clusters: str) -> None:
        self.clock = clock
        self.server = APIServer("c1", clock)
        self.links = Links()
        self.policies: PlacementPolicies
        self.publisher: DecisionPublisher
        self.moves: ClosedClusters | None = None
        self.kept_together: tuple[str, ...] = ()
        for cluster in clusters:
            self.add_target(cluster)

    def add_target(
        self, name: str, namespace: str = "", *, labels: Object | None = None, **spec: Any
    ) -> None:
        kind = kinds.TARGETS if namespace else kinds.CLUSTER_TARGETS
        key = TargetKey(namespace, name)
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        self.server.add(kind, {"metadata": metadata, "spec": spec})
        node = virtual.registration(key)
        node["metadata"]["labels"] |= labels or {}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self.server.add(kinds.NODES, node | {"status": ready})

    def remove_target(self, name: str) -> None:
        """Remove a ClusterTarget, and with it its virtual node."""
        self.server.remove(kinds.CLUSTER_TARGETS, name)
        self.server.remove(kinds.NODES, node_of(name))

    def add_policy(self, name: str = "web", namespace: str = "default", **spec: Any) -> None:
        kind = kinds.PLACEMENT_POLICIES if namespace else kinds.CLUSTER_PLACEMENT_POLICIES
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        self.server.add(kind, {"metadata": metadata | {"generation": 1}, "spec": spec})

    def add_pods(
        self, workload: str, node: str, count: int, phase: str = "Running", name: str = ""
    ) -> Objects:
        """Add pods of a Deployment, bound to a virtual node unless that is ""."""
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{workload}-1", "uid": "r"}
        made = []
        for number in range(count):
            metadata = {
                "name": f"{name or workload}-{node or 'none'}-{number}",
                "namespace": "default",
                "labels": {"app": workload, "pod-template-hash": "1"},
                "ownerReferences": [owner | {"controller": True}],
            }
            spec = {"schedulerName": keys.PROXY_SCHEDULER, "containers": []}
            pod = {
                "metadata": metadata,
                "spec": spec | ({"nodeName": node} if node else {}),
                "status": {"phase": phase},
            }
            made.append(self.server.add(kinds.PODS, pod))

        return made

    def link(self, cluster: str) -> tuple[APIServer, Link]:
        """Connect to a cluster; the informers of the link do not run yet."""
        server = APIServer(cluster, self.clock)
        link = link_to(server, TargetKey("", cluster), US, self.clock)
        self.links.add(link)
        return server, link

    def status(self, name: str = "web", namespace: str = "default") -> Object:
        kind = kinds.PLACEMENT_POLICIES if namespace else kinds.CLUSTER_PLACEMENT_POLICIES
        policy = self.server.find(kind, name, namespace)
        assert policy is not None
        return objects.status(policy)

    def accepted(self, name: str = "web", type_: str = "Accepted") -> tuple[str, str, str]:
        """Return the status, reason and message of a policy's condition."""
        [condition] = [c for c in self.status(name)["conditions"] if c["type"] == type_]
        return condition["status"], condition["reason"], condition["message"]

    def planned(self, name: str = "web") -> dict[str, dict[str, int]]:
        """Return how many pods a policy plans, by workload and virtual node."""
        return {
            entry["workload"]: {target["cluster"]: target["planned"] for target in entry["targets"]}
            for entry in self.status(name)["workloads"]
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        client = self.server.client()
        targets = TargetLister(client)
        self.policies = PlacementPolicies(
            client, targets, self.clock, kept_together=self.kept_together
        )
        proxies = Informer(client, kinds.PODS, trim=proxy_state.trim)
        virtual_nodes = nodes.informer(client)
        events = EventRecorder(client, "vnode", self.clock)
        with subscription_scope():
            self.publisher = DecisionPublisher(client, targets.profiles_of_nodes, self.clock)
            index = indexed(proxies, self.policies, self.clock)
            controller = PolicyStatusController(
                client,
                self.policies,
                index,
                proxies,
                Nobody(),
                virtual_nodes,
                self.links,
                events=events,
                clock=self.clock,
                publisher=self.publisher,
                moves=self.moves,
            )
            runs = [
                each.run()
                for each in (
                    targets,
                    self.policies,
                    proxies,
                    virtual_nodes,
                    events,
                    index,
                    controller,
                    self.publisher,
                )
            ]
            tasks = [asyncio.create_task(run) for run in runs]
            try:
                async with asyncio.timeout(SETTLED):
                    await self.policies.wait_known()

                await asyncio.sleep(SETTLED)
                yield
            finally:
                for task in tasks:
                    task.cancel()

                for ended in await asyncio.gather(*tasks, return_exceptions=True):
                    assert isinstance(ended, asyncio.CancelledError), ended
