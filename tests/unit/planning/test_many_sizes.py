"""A workload of thousands of pods that wait, each of a size of its own, holds no cycle up."""

from __future__ import annotations

import time
from typing import Final

from vnode.api.objects import Object
from vnode.planning.workload import Workload

COUNT: Final = 2_000
NODES: Final = tuple(f"node-{number}" for number in range(40))
SINCE: Final = 1767225600.0
ALLOWED: Final = 0.8
"""Seconds of the processor for twenty sizes; a look for each node took 1.4."""


def _pod(number: int) -> Object:
    requests = {"cpu": f"{number + 1}m", "memory": f"{COUNT - number}Mi"}
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "metadata": {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}"},
        "spec": {"containers": [{"resources": {"requests": requests}}]},
        "status": {"conditions": [condition]},
    }


def test_pods_that_wait_are_looked_at_once_for_all_nodes() -> None:
    workload = Workload("deployment/ns/web")
    for number in range(COUNT):
        workload.put(_pod(number))
        workload.plan(workload.members[f"u{number}"], NODES[number % len(NODES)], ())

    begun = time.thread_time()
    for number in range(20):
        size = workload.members[f"u{number}"].size
        waiting = [node for node in NODES if workload.waited.since(node, size) == SINCE]
        assert waiting == [NODES[number]]

    assert time.thread_time() - begun < ALLOWED
