"""Measures the CPU time that one change of a policy takes among thousands, in simulated time.

The source's API server is in memory, and what a leader does for placement and scheduling is as in
production; whatever else it does with pods is left out, and no target is connected. So everything
that a change leads to has been done when simulated seconds have passed, and the CPU time of this
process is what it took, with that of the API server.
"""

from __future__ import annotations

import asyncio
import functools
import time
from typing import Final, cast

from hack.fleetlib import progress
from tests.apiserver.server import APIServer
from tests.bench import policy_figures
from tests.bench.policy_figures import PolicyChanges, is_accepted
from tests.simulation import loop
from vnode.agent.config import AgentConfig
from vnode.agent.kubelet_api import KubeletApi
from vnode.agent.parts import Parts
from vnode.agent.shared import AgentOptions, Shared
from vnode.agent.term import Term
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.identity import Identity
from vnode.api.listeners import subscription_scope
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.nodes import virtual
from vnode.runtime import memory
from vnode.runtime.health import ProcessHealth
from vnode.runtime.supervisor import supervise

_BESIDE: Final = frozenset(("events-of-leader", "bound-pods", "scheduler"))
"""Parts of a term beside those of placement."""
_CLUSTERS: Final = ("a", "b")
_SETTLED: Final = 30.0  # simulated seconds after which all is done that a change leads to
_BEGUN: Final = 1000.0  # simulated seconds after which all is done that the start leads to


class PlacementTerm(Term):
    """A term that keeps pods to policies, and schedules those that are not bound."""

    def parts(self) -> Parts:
        """List what is measured of a term."""
        kept = _BESIDE.union(part.name for part in self._placement.parts())
        return tuple(part for part in super().parts() if part.name in kept)


class ManyPolicies:
    """A source with policies and running pods in many namespaces."""

    def __init__(self, pods: int, policies: int, namespaces: int) -> None:
        self.server = APIServer("c1", SystemClock())
        self._pods = pods // namespaces
        self._policies = policies // namespaces
        self._namespaces = namespaces

    def fill(self) -> None:
        """Make everything that is there before the agent."""
        for name in _CLUSTERS:
            self.server.add(kinds.CLUSTER_TARGETS, {"metadata": {"name": name}, "spec": {}})
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            node = virtual.registration(TargetKey("", name))
            self.server.add(kinds.NODES, {**node, "status": ready})

        label, value = keys.WEBHOOK_NAMESPACE_LABEL
        for namespace in map(_namespace, range(self._namespaces)):
            metadata = {"name": namespace, "labels": {label: value}}
            self.server.add(kinds.NAMESPACES, {"metadata": metadata})
            for number in range(self._policies):
                self.server.add(kinds.PLACEMENT_POLICIES, _policy(namespace, number))

            for number in range(self._pods):
                self.server.add(kinds.PODS, _pod(namespace, number, number % self._policies))

    def check(self) -> None:
        """Raise AssertionError unless all policies are in force, else nothing would be measured."""
        found = self.server.store.all(kinds.PLACEMENT_POLICIES)
        refused = [each for each in found if not is_accepted(each)]
        assert not refused, f"{len(refused)} policies are not in force: {refused[:1]}"

    def change(self, number: int) -> None:
        """Change the weights of a policy: of another namespace each time."""
        key = f"{_namespace(number % self._namespaces)}/web-0"
        change = functools.partial(_weighed, weight=2 + number // self._namespaces)
        self.server.writer.update(kinds.PLACEMENT_POLICIES, key, change)


def changes(pods: int, policies: int, namespaces: int, count: int) -> PolicyChanges:
    """Measure so many changes, one after the other."""
    memory.configure()
    many = ManyPolicies(pods, policies, namespaces)
    many.fill()
    seconds = loop.run(_changes(many, count))
    return policy_figures.changes(pods, policies, namespaces, seconds)


async def _changes(many: ManyPolicies, count: int) -> list[float]:
    system = many.server.find(kinds.NAMESPACES, "kube-system") or {}
    shared = Shared(
        many.server.client(),
        Identity("c1", objects.uid(system)),
        AgentOptions("vnode", "192.0.2.1", AgentConfig(), None, "c1"),
        ProcessHealth(),
    )
    async with supervise() as tasks:
        for informer in (shared.namespaces, shared.proxies, shared.nodes):
            tasks.start(informer.run(), informer.kind.plural)

        tasks.start(shared.targets.run(), "watch-targets")
        tasks.start(shared.policies.run(), "placement-policies")
        for informer in (shared.namespaces, shared.proxies, shared.nodes):
            await informer.synced.wait()

        with subscription_scope():
            term = asyncio.create_task(
                PlacementTerm(shared, cast("KubeletApi", None)).run(), name="term"
            )
            try:
                return await _measured(many, count)
            finally:
                term.cancel()
                await asyncio.wait({term})
                tasks.stop()


async def _measured(many: ManyPolicies, count: int) -> list[float]:
    took = await _cpu(_BEGUN)
    many.check()
    progress.say(f"the leader's start took {took:.1f} s of CPU ...")
    idle, seconds = min([await _cpu(_SETTLED) for _ in range(5)]), list[float]()
    for number in range(count):
        many.server.requests.clear()
        many.change(number)
        seconds.append(max(0.0, await _cpu(_SETTLED) - idle))

    return seconds


async def _cpu(seconds: float) -> float:
    """Return the CPU seconds that so many simulated ones take."""
    before = time.process_time()
    await asyncio.sleep(seconds)
    return time.process_time() - before


def _namespace(number: int) -> str:
    return f"team-{number:03}"


def _policy(namespace: str, number: int) -> Object:
    return {
        "metadata": {"name": f"web-{number}", "namespace": namespace, "generation": 1},
        "spec": {
            "selector": {"matchLabels": {"app": f"web-{number}"}},
            "mode": "Spread",
            "targets": [{"cluster": name, "weight": 1} for name in _CLUSTERS],
            "reschedule": {"when": ["ClusterJoined"]},
        },
    }


def _weighed(policy: Object, weight: int) -> Object:
    spec = objects.spec(policy)
    targets = [{**spec["targets"][0], "weight": weight}, *spec["targets"][1:]]
    return {**policy, "spec": {**spec, "targets": targets}}


def _pod(namespace: str, number: int, policy: int) -> Object:
    """Build a pod of a Deployment that runs in one of the clusters."""
    node = TargetKey("", _CLUSTERS[number // 50 % len(_CLUSTERS)]).node_name
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"web-{policy}-1",
        "uid": f"{namespace}-{policy}",
        "controller": True,
    }
    metadata = {
        "name": f"web-{policy}-1-{number}",
        "namespace": namespace,
        "labels": {"app": f"web-{policy}", "pod-template-hash": "1"},
        "annotations": {keys.ELECT: ""},
        "ownerReferences": [owner],
    }
    conditions = [{"type": each, "status": "True"} for each in ("PodScheduled", "Ready")]
    return {
        "metadata": metadata,
        "spec": {
            "schedulerName": keys.PROXY_SCHEDULER,
            "nodeName": node,
            "containers": [{"name": "main", "image": "web"}],
        },
        "status": {"phase": "Running", "conditions": conditions},
    }
