"""Milliseconds that Filter takes for a pod of devices: `python tests/bench/device_filter.py`.

Twenty targets of 200 nodes with 8 devices each, of three models, and no two nodes with equal
amounts free; the size of their ClusterSummary, and the time to build it, come first.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from typing import Any

from scheduler_plugins.resources_fit import NodeResourcesFit, ResourcesFitArgs
from tests.permitted import any_namespace
from vnode.api import keys, objects, resources, rows_text
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.nodes import capacity
from vnode.pods import chaperon_spec
from vnode.scheduling import reported
from vnode.scheduling.cache import Cache
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.plugin import Handle
from vnode.scheduling.snapshot import VirtualNode

TARGETS, NODES, ATTEMPTS = 20, 200, 500
GPU, MODEL = "nvidia.com/gpu", "nvidia.com/gpu.product"
MANIFESTS = SavedManifests(lambda: b"k" * 32)
OFFERED = {"cpu": "96", "memory": "1056Gi", "pods": "110", "ephemeral-storage": "1757Gi", GPU: "8"}


def summary(chance: random.Random) -> Object:
    nodes, usage = [], capacity.Usage()
    for number in range(NODES):
        name, model = f"node-{number}", chance.choice(["A100", "H100", "T4"])
        ready = [{"type": "Ready", "status": "True"}]
        node = {
            "metadata": {"name": name, "labels": {MODEL: model}},
            "spec": {"taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}]},
            "status": {"conditions": ready, "capacity": OFFERED, "allocatable": OFFERED},
        }
        nodes.append(capacity.trim_node(node))
        requests = {
            "cpu": f"{chance.randrange(96_000)}m",
            "memory": f"{chance.randrange(1_000_000)}Mi",
            GPU: str(chance.randrange(9)),
        }
        spec = {"nodeName": name, "containers": [{"resources": {"requests": requests}}]}
        usage.change(None, capacity.trim_pod({"metadata": {"name": name}, "spec": spec}))

    start = time.process_time()
    made = capacity.summary(nodes, usage)
    taken = (time.process_time() - start) * 1000
    size = len(json.dumps(made, separators=(",", ":")))
    print(f"a summary of {NODES} nodes: {size} bytes, built in {taken:.1f} ms")
    return made


def add_target(cache: Cache, name: str, made: Object) -> None:
    node = {"metadata": {"name": name}}
    allocatable = resources.parse(made["allocatable"])
    cache.update_node(VirtualNode(name, node, ("", name), allocatable=allocatable))
    free, largest = reported.read_free(made)
    rows = rows_text.decode(objects.annotations(made)[keys.ROWS])
    cache.update_free(name, free, largest, reported.read_nodes(made, rows, largest), rows)


def proxy(gpus: int, cpu: int, model: str = "") -> Object:
    requests = {"cpu": str(cpu), "memory": "64Gi", GPU: str(gpus)}
    metadata: dict[str, Any] = {"name": "p", "namespace": "a", "uid": "u"}
    spec = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
        "nodeSelector": {MODEL: model} if model else {},
        "tolerations": [{"key": GPU, "operator": "Exists"}],
        "schedulerName": keys.PROXY_SCHEDULER,
    }
    made = {"metadata": metadata, "spec": spec}
    text = json.dumps(made)
    signature = MANIFESTS.signature(made, "a", text)
    saved = {keys.SOURCE_POD_MANIFEST: text, keys.MANIFEST_SIGNATURE: signature}
    return {**made, "metadata": {**metadata, "annotations": saved}}


def main() -> None:
    cache, chance = Cache(), random.Random(1)
    for number in range(TARGETS):
        add_target(cache, f"t{number}", summary(chance))

    snapshot = cache.snapshot()
    handle = Handle(
        namespace_refusal=any_namespace,
        constraints=lambda pod: chaperon_spec.constraints(pod, MANIFESTS),
    )
    plugin = NodeResourcesFit(ResourcesFitArgs(), handle)
    for pod in (proxy(8, 8, "H100"), proxy(1, 1), proxy(16, 1), proxy(1, 1, "B200")):
        taken = []
        for _ in range(ATTEMPTS):
            state, start = CycleState(), time.process_time()
            plugin.pre_filter(state, pod, snapshot)
            statuses = [plugin.filter(state, pod, node) for node in snapshot]
            taken.append(time.process_time() - start)

        why = next((status.message for status in statuses if not status.is_success), "passed")
        print(f"Filter over {TARGETS} targets: {statistics.median(taken) * 1000:.3f} ms: {why}")


if __name__ == "__main__":
    main()
