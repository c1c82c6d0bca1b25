"""A pod that fits nowhere is tried first where a node pool may grow for it."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.scheduling.gpu_targets import (
    GPU,
    MODEL,
    add_target,
    gpu_pod,
    make_framework,
    without_affinity,
)
from vnode.api import node_pools, objects
from vnode.api.objects import Object
from vnode.scheduling.cache import Cache
from vnode.scheduling.result import CycleResult

A100 = node_pools.parse(
    json.dumps([{"labels": {MODEL: "A100"}, "allocatable": {GPU: 8, "cpu": 96}, "max": 2}])
)


def result(cache: Cache, candidate: Object, **handle: Any) -> CycleResult:
    """Schedule a pod that is its own delegate."""
    proxy = {**candidate, "spec": without_affinity(objects.spec(candidate))}
    framework = make_framework(constraints=lambda _pod: objects.spec(candidate), **handle)
    return framework.schedule(proxy, cache.snapshot())


def many_targets(**cloud: Any) -> Cache:
    """Make a fleet of ten targets of T4s, and one whose pool may grow."""
    cache = Cache()
    for number in range(10):
        add_target(cache, f"t{number}", (1, 8, "T4"))

    add_target(cache, "cloud", *cloud.pop("nodes", ()), pools=A100, **cloud)
    return cache


def test_the_target_that_may_grow_is_tried_first() -> None:
    for uid in map(str, range(20)):
        wanted = gpu_pod(8, nodeSelector={MODEL: "A100"})
        wanted["metadata"]["uid"] = uid
        assert result(many_targets(), wanted).nominated == ("cloud",)


def test_targets_that_have_room_come_before_it() -> None:
    cache = many_targets()
    add_target(cache, "t0", (8, 90, "A100"))
    found = result(cache, gpu_pod(8, nodeSelector={MODEL: "A100"}))
    assert [node.name for node in found.feasible] == ["t0"]


def test_one_whose_pool_is_full_or_holds_no_such_pod_is_like_all_others() -> None:
    full = many_targets(nodes=[(0, 0, "A100")] * 2)
    for cache, wanted in (
        (full, gpu_pod(8)),
        (many_targets(), gpu_pod(9)),
        (many_targets(), gpu_pod(8, nodeSelector={MODEL: "H100"})),
    ):
        first = set()
        for uid in map(str, range(20)):
            wanted["metadata"]["uid"] = uid
            first.update(result(cache, wanted).nominated)

        assert len(first) > 1


def test_devices_that_only_a_pool_has_are_missing_elsewhere() -> None:
    cache = Cache()
    add_target(cache, "t1", (0, 64, ""))
    add_target(cache, "cloud", pools=A100)
    found = result(cache, gpu_pod(8))
    assert not found.feasible
    assert found.statuses["t1"].message == "Insufficient nvidia.com/gpu"
    assert found.nominated == ("cloud",)
