"""A pod passes only where one node can take it, as far as its target tells of its nodes."""

from __future__ import annotations

import pytest

from tests.unit.scheduling.builders import virtual_node
from tests.unit.scheduling.gpu_targets import (
    GPU,
    MODEL,
    add_target,
    gpu_pod,
    make_framework,
    reason,
)
from vnode.api import keys
from vnode.scheduling.cache import Cache


@pytest.fixture
def fleet() -> Cache:
    """Make a fleet of a target with pieces of 8 GPUs, one with T4s, and one with 4 on a node."""
    cache = Cache()
    add_target(cache, "t1", *[(1, 12, "A100")] * 8)
    add_target(cache, "t2", *[(1, 8, "T4")] * 16)
    add_target(cache, "t3", (4, 48, "A100"))
    return cache


def test_gpus_in_pieces_are_not_gpus_on_one_node(fleet: Cache) -> None:
    found = make_framework().schedule(gpu_pod(2), fleet.snapshot())
    assert [node.name for node in found.feasible] == ["t3"]
    size = "Insufficient nvidia.com/gpu on any one node (the largest has 1 free)"
    assert {name: status.message for name, status in found.statuses.items()} == {
        "t1": size,
        "t2": size,
    }


def test_a_pod_that_chooses_a_model_goes_where_a_node_of_it_is_large_enough(fleet: Cache) -> None:
    wanted = gpu_pod(1, nodeSelector={MODEL: "A100"})
    assert reason(fleet, wanted, "t1") == reason(fleet, wanted, "t3") == ""
    assert reason(fleet, wanted, "t2") == "no node has nvidia.com/gpu.product=A100"
    large = gpu_pod(2, nodeSelector={MODEL: "A100"})
    assert reason(fleet, large, "t1") == (
        "Insufficient nvidia.com/gpu on any one node with nvidia.com/gpu.product=A100 "
        "(the largest has 1 free)"
    )


def test_a_target_of_several_models_takes_pods_of_each() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 90, "A100"), (1, 8, "T4"))
    for model, gpus, passes in (("A100", 8, True), ("T4", 1, True), ("T4", 2, False)):
        assert (reason(cache, gpu_pod(gpus, nodeSelector={MODEL: model})) == "") is passes

    assert reason(cache, gpu_pod(1, nodeSelector={MODEL: "H100"})) == (
        "no node has nvidia.com/gpu.product=H100"
    )


def test_the_cpu_of_another_node_does_not_help() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 0, "A100"), (0, 64, ""))
    assert reason(cache, gpu_pod(8, "16")) == "Insufficient cpu on any one node"
    assert reason(cache, gpu_pod(0, "16")) == ""


def test_a_tainted_node_is_for_pods_that_tolerate_it() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 64, "A100"), taint="team")
    tolerations = [{"key": "team", "operator": "Exists"}]
    assert reason(cache, gpu_pod(8)) == "node(s) had untolerated taint {team: }"
    assert reason(cache, gpu_pod(8, tolerations=tolerations)) == ""
    assert reason(cache, gpu_pod(0)) == "node(s) had untolerated taint {team: }"


def test_what_an_override_policy_changes_is_for_the_candidate_to_say() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 64, "A100"))
    wanted = gpu_pod(1, nodeSelector={MODEL: "H100"})
    assert reason(cache, wanted, is_overridden=lambda _pod, node: node == "t1") == ""
    assert reason(cache, wanted, is_overridden=lambda _pod, _node: False) != ""


@pytest.mark.parametrize("is_known", [True, False])
def test_constraints_that_are_not_readable_are_for_the_candidate_to_judge(is_known: bool) -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 64, "A100"))
    operator = {"matchExpressions": [{"key": MODEL, "operator": "Near", "values": ["x"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [operator]}}
    unreadable = {"affinity": {"nodeAffinity": required}}
    framework = make_framework(constraints=lambda _pod: unreadable if is_known else None)
    assert framework.schedule(gpu_pod(8), cache.snapshot()).feasible


def test_a_resource_that_no_target_lists_is_for_the_candidate_to_judge(fleet: Cache) -> None:
    wanted = gpu_pod(1)
    wanted["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpumem"] = "3000"
    assert reason(fleet, wanted, "t1") == ""
    wanted["metadata"]["annotations"] = {keys.NO_RESERVATION: ""}
    assert reason(fleet, wanted, "t1") == "Insufficient nvidia.com/gpumem"
    add_target(fleet, "t4", (1, 1, ""))
    assert reason(fleet, gpu_pod(1), "t4") == "Insufficient nvidia.com/gpu"


def test_a_resource_that_a_target_has_without_listing_it_is_for_its_candidate() -> None:
    cache = Cache()
    add_target(cache, "t1", (0, 64, ""), unlisted=frozenset({GPU}))
    add_target(cache, "t2", (8, 64, "A100"))
    add_target(cache, "t3", (0, 64, ""))
    assert reason(cache, gpu_pod(8), "t1") == ""
    assert reason(cache, gpu_pod(8, "65"), "t1") == "Insufficient cpu"
    assert reason(cache, gpu_pod(8), "t3") == "Insufficient nvidia.com/gpu"


def test_what_is_promised_counts_beside_the_rows() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 64, "A100"), (8, 64, "A100"))
    for number in range(2):
        assert reason(cache, gpu_pod(8)) == ""
        promised = gpu_pod(8)
        promised["metadata"]["uid"] = f"q{number}"
        cache.assume(promised, "t1", now=0)

    assert "Insufficient nvidia.com/gpu" in reason(cache, gpu_pod(8))


def test_a_target_that_tells_of_no_nodes_goes_by_its_sum_and_its_largest_node() -> None:
    cache = Cache()
    cache.update_node(virtual_node("t1", allocatable={GPU: 8, "cpu": 1000, "pods": 9}))
    free = {GPU: 8, "cpu": 1000, "pods": 9}
    cache.update_free("t1", free, {**free, GPU: 1})
    assert reason(cache, gpu_pod(2)) == "Insufficient nvidia.com/gpu on any one node"
    cache.update_free("t1", free, None)
    assert reason(cache, gpu_pod(8, nodeSelector={MODEL: "A100"})) == ""
