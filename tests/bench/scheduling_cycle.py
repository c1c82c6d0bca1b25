"""Microseconds that a scheduling cycle takes: `python tests/bench/scheduling_cycle.py`.

For 2, 10 and 50 virtual nodes and 10,000 proxies already placed; each cycle ends as a real one
does, with the pod assumed on the best node. Without constraints, with topology spread, and with a
placement policy for all nodes.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from scheduler_plugins import defaults
from tests.permitted import any_namespace
from vnode.api.clock import SystemClock
from vnode.planning.policy import (
    NO_POLICIES,
    Clusters,
    PlacementTarget,
    Policies,
    Policy,
)
from vnode.scheduling import registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.config import Profile
from vnode.scheduling.plugin import Handle
from vnode.scheduling.registry import Registry
from vnode.scheduling.snapshot import VirtualNode

PLACED = 10_000
CYCLES = 1_000
AMPLE = {"cpu": 10**9, "memory": 2**50, "pods": 10**6}
SPREAD: dict[str, Any] = {
    "topologySpreadConstraints": [
        {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 5,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}


def pod(number: int, **spec: Any) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {
        "metadata": {
            "name": f"p{number}",
            "namespace": "default",
            "uid": f"uid-{number}",
            "labels": {"app": "web", "number": str(number)},
            "ownerReferences": [{"uid": f"owner-{number % 10}", "controller": True}],
        },
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            "nodeSelector": {"virtual-kubelet.io/provider": "admiralty"},
            "tolerations": [{"key": "virtual-kubelet.io/provider", "value": "admiralty"}],
            **spec,
        },
        "status": {"phase": "Running"},
    }


def env(nodes: int) -> Cache:
    cache = Cache()
    for number in range(nodes):
        name = f"admiralty-c{number}"
        labels = {"virtual-kubelet.io/provider": "admiralty", "kubernetes.io/hostname": name}
        taint = {"key": "virtual-kubelet.io/provider", "value": "admiralty", "effect": "NoSchedule"}
        node = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [taint]}}
        cache.update_node(VirtualNode(name, node, ("default", name), "default", allocatable=AMPLE))
        cache.update_free(name, AMPLE, AMPLE)

    for number in range(PLACED):
        cache.set_pod(pod(number, nodeName=f"admiralty-c{number % nodes}"))

    return cache


class ByWeight:
    """A policy for all pods, with another weight for each node."""

    def __init__(self, nodes: int) -> None:
        names = (frozenset((f"admiralty-c{number}",)) for number in range(nodes))
        targets = (PlacementTarget(Clusters(names=name), 1 + n % 5) for n, name in enumerate(names))
        self._policy = Policy("placementpolicy/web", "default", None, targets=tuple(targets))

    def __bool__(self) -> bool:
        return True

    def of(self, _pod: object) -> Policy:
        return self._policy


def measure(nodes: int, policies: Policies = NO_POLICIES, **spec: Any) -> float:
    """Return the median of a cycle with its assumption, in microseconds of CPU."""
    known = Registry(defaults.PLUGINS)
    framework = registry.build(
        Profile(),
        known,
        defaults.WEIGHTS,
        Handle(namespace_refusal=any_namespace, policies=policies, clock=SystemClock()),
    )
    cache = env(nodes)
    taken = []
    for number in range(PLACED, PLACED + CYCLES):
        pending = {**pod(number, **spec), "status": {"phase": "Pending"}}
        cache.set_pod(pending)
        start = time.process_time()
        result = framework.schedule(pending, cache.snapshot())
        result.state.outcome.record()
        cache.assume(pending, result.feasible[0].name, 0.0)
        taken.append(time.process_time() - start)

    return statistics.median(taken) * 1e6


def main() -> None:
    print(f"median of {CYCLES} cycles, {PLACED} pods placed, default profile")
    for nodes in (2, 10, 50):
        plain, spread = measure(nodes), measure(nodes, **SPREAD)
        policy = measure(nodes, ByWeight(nodes))
        print(
            f"{nodes:3} nodes: {plain:6.0f} us, with topology spread {spread:6.0f} us, "
            f"with a policy {policy:6.0f} us"
        )


if __name__ == "__main__":
    main()
