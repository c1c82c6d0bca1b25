"""How many more pods clusters have room for: by rows where they tell of nodes, else by sums."""

from __future__ import annotations

from typing import Any

from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, virtual_node
from tests.unit.scheduling.gpu_targets import GPU, MODEL, add_target, gpu_pod
from vnode.api import resources
from vnode.api.objects import Object
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.api.shape import Shape
from vnode.scheduling import rooms
from vnode.scheduling.cache import Cache
from vnode.scheduling.plugin import Handle


def rooms_of(cache: Cache, candidate: Object, **handle: Any) -> dict[str, int | None]:
    made = Handle(namespace_refusal=any_namespace, clock=ManualClock(), **handle)
    requests = resources.pod_requests(candidate)
    return rooms.rooms(candidate, requests, cache.snapshot().nodes, made)


def test_devices_in_pieces_are_no_room_for_pods_that_want_them_on_one_node() -> None:
    cache = Cache()
    add_target(cache, "t1", *[(1, 12, "A100")] * 8)
    add_target(cache, "t2", (4, 48, "A100"), (5, 1, "A100"))
    assert rooms_of(cache, gpu_pod(2)) == {"t1": 0, "t2": 3}
    assert rooms_of(cache, gpu_pod(1)) == {"t1": 8, "t2": 5}


def test_only_nodes_of_the_model_that_the_pod_names_count() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 90, "A100"), (4, 90, "T4"))
    assert rooms_of(cache, gpu_pod(2, nodeSelector={MODEL: "T4"})) == {"t1": 2}
    assert rooms_of(cache, gpu_pod(2, nodeSelector={MODEL: "H100"})) == {"t1": 0}


def test_where_override_policies_change_the_pod_sums_count() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 90, "A100"))
    wanted = gpu_pod(2, nodeSelector={MODEL: "H100"})
    assert rooms_of(cache, wanted, is_overridden=lambda _pod, _node: True) == {"t1": 4}


def test_where_constraints_are_not_known_sums_count() -> None:
    cache = Cache()
    add_target(cache, "t1", *[(1, 12, "A100")] * 8)
    assert rooms_of(cache, gpu_pod(2), constraints=lambda _pod: None) == {"t1": 4}


def test_pods_without_devices_count_on_nodes_as_well() -> None:
    cache = Cache()
    add_target(cache, "t1", *[(0, 3, "")] * 4)
    assert rooms_of(cache, gpu_pod(0, cpu="2")) == {"t1": 4}


def test_a_target_that_tells_of_no_nodes_has_room_by_its_sum() -> None:
    cache = Cache()
    cache.update_node(virtual_node("t1"))
    cache.update_node(virtual_node("t2"))
    cache.update_free("t1", {"cpu": 7000, "pods": 9}, {"cpu": 1000, "pods": 9})
    assert rooms_of(cache, gpu_pod(0, cpu="2")) == {"t1": 3, "t2": None}


def test_a_resource_that_no_target_lists_does_not_count_and_one_that_others_list_does() -> None:
    cache = Cache()
    add_target(cache, "t1", (0, 8, ""))
    assert rooms_of(cache, gpu_pod(1)) == {"t1": 8}
    add_target(cache, "t2", (2, 8, "A100"))
    add_target(cache, "t3", (0, 8, ""), unlisted=frozenset({GPU}))
    assert rooms_of(cache, gpu_pod(1)) == {"t1": 0, "t2": 2, "t3": 8}


def test_what_is_promised_is_no_room() -> None:
    cache = Cache()
    add_target(cache, "t1", (4, 48, "A100"), (4, 48, "A100"))
    promised = gpu_pod(3)
    promised["metadata"]["uid"] = "q"
    cache.assume(promised, "t1", now=0)
    assert rooms_of(cache, gpu_pod(4)) == {"t1": 1}


def test_small_pods_are_counted_by_the_middle_of_what_is_rounded() -> None:
    row = RowOfNodes(10, {"cpu": 0, "pods": 100}, {"cpu": 3999, "pods": 103})
    rows = Rows((), frozenset({"cpu", "pods"}), (AlikeNodes({}, (), (row,)),), 10, True)
    shape = Shape({"cpu": 1000, "pods": 1})
    assert rows.fit(shape) == 0
    assert rows.estimate(shape) == 10
    assert rows.estimate(Shape({"cpu": 1000, "pods": 1})) == 10
