"""What is said of a target's nodes by its rows."""

from __future__ import annotations

from typing import Any

import pytest

from vnode.api import shape
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import MODEL_LABELS, AlikeNodes, RowOfNodes, Rows
from vnode.api.shape import Shape

MODEL = "nvidia.com/gpu.product"
GPU = "nvidia.com/gpu"
TAINT = {"key": "team", "value": "ml", "effect": "NoSchedule"}
CPU, GIB = 1000, 2**30


def node(gpu: int = 0, cpu: int = 0, memory: int = 0, count: int = 1) -> RowOfNodes:
    """Make a row of nodes; memory is told in GiB, and the rest exactly."""
    free: Resources = {GPU: gpu, "cpu": cpu * CPU, "memory": memory * GIB, "pods": 100}
    return RowOfNodes(count, free, {**free, "memory": memory * GIB + GIB - 1})


def nodes(*rows: RowOfNodes, model: str = "", taints: tuple[Object, ...] = ()) -> AlikeNodes:
    return AlikeNodes({MODEL: model} if model else {}, taints, rows)


def cluster(*alike: AlikeNodes, complete: bool = True) -> Rows:
    count = sum(row.count for each in alike for row in each.rows)
    told = frozenset({GPU, "cpu", "memory", "pods"})
    return Rows(MODEL_LABELS, told, alike, count, complete)


def pod(gpu: int = 0, cpu: int = 0, memory: int = 0, **spec: Any) -> Shape:
    wanted = {GPU: gpu, "cpu": cpu * CPU, "memory": memory * GIB, "pods": 1}
    return shape.of_spec(wanted, spec)


def requires(*expressions: Object) -> Object:
    """Make the affinity with one term for each expression."""
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


A100 = nodes(node(8, 90, 900, count=3), node(4, 40, 400, count=2), model="A100")
T4 = nodes(node(1, 8, 30, count=16), model="T4")
PLAIN = nodes(node(cpu=64, memory=256))


def test_as_many_pods_fit_as_fit_on_each_node() -> None:
    rows = cluster(A100)
    wanted = pod(4, 40, 300)
    assert rows.fit(wanted) == 3 * min(2, 2, 3) + 2 * 1
    assert rows.fits(wanted, 8)
    assert not rows.fits(wanted, 9)


def test_a_model_is_counted_by_itself() -> None:
    rows = cluster(A100, T4, PLAIN)
    assert rows.fit(pod(1)) == 3 * 8 + 2 * 4 + 16
    assert rows.fit(pod(1, nodeSelector={MODEL: "T4"})) == 16
    some = {"key": MODEL, "operator": "In", "values": ["T4", "H100"]}
    assert rows.fit(pod(1, affinity=requires(some))) == 16
    either = (some, {"key": MODEL, "operator": "In", "values": ["A100"]})
    assert rows.fit(pod(1, affinity=requires(*either))) == 48
    assert rows.fit(pod(1, affinity=requires({"key": MODEL, "operator": "DoesNotExist"}))) == 0
    assert rows.histogram(GPU) == {"A100": {8: 3, 4: 2}, "T4": {1: 16}, "": {0: 1}}


def test_the_largest_node_is_the_one_with_the_most_devices_of_the_model() -> None:
    rows = cluster(A100, T4, PLAIN)
    assert rows.largest(pod(1, 1)) == A100.rows[0]
    assert rows.largest(pod(cpu=1)) == A100.rows[0]
    assert rows.largest(pod(1, nodeSelector={MODEL: "T4"})) == T4.rows[0]
    assert rows.largest(pod(1, nodeSelector={MODEL: "H100"})) is None


def test_all_that_a_pod_wants_has_to_be_on_one_node() -> None:
    rows = cluster(nodes(node(8, 0, 900), node(4, 16, 900), model="A100"), PLAIN)
    assert rows.refusals(pod(8)) == ()
    assert rows.refusals(pod(8, 16)) == ("Insufficient cpu on any one node",)
    assert rows.refusals(pod(9)) == (
        "Insufficient nvidia.com/gpu on any one node (the largest has 8 free)",
    )
    assert rows.refusals(pod(8, 100, nodeSelector={MODEL: "A100"})) == (
        f"Insufficient cpu on any one node with {MODEL}=A100",
    )


def test_what_the_largest_node_of_a_model_has_is_said() -> None:
    rows = cluster(A100, T4)
    assert rows.refusals(pod(2, nodeSelector={MODEL: "T4"})) == (
        f"Insufficient nvidia.com/gpu on any one node with {MODEL}=T4 (the largest has 1 free)",
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"nodeSelector": {MODEL: "H100"}}, f"no node has {MODEL}=H100"),
        (
            {
                "affinity": requires(
                    {"key": MODEL, "operator": "In", "values": ["H200", "H100"]},
                )
            },
            f"no node has {MODEL} in (H100, H200)",
        ),
        (
            {"affinity": requires({"key": "accelerator", "operator": "Exists"})},
            "no node has accelerator",
        ),
        (
            {"affinity": requires({"key": MODEL, "operator": "NotIn", "values": ["A100", "T4"]})},
            "node(s) didn't match Pod's node affinity/selector",
        ),
    ],
)
def test_a_model_that_no_node_has_is_named(spec: Object, why: str) -> None:
    assert cluster(A100, T4).refusals(pod(1, **spec)) == (why,)


def test_a_label_that_is_not_told_is_left_to_the_candidate() -> None:
    rows = cluster(A100)
    assert rows.refusals(pod(8, nodeSelector={"disk": "ssd"})) == ()
    field = {"key": "metadata.name", "operator": "In", "values": ["x"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    named = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert rows.refusals(pod(8, affinity=named)) == ()


def test_a_resource_that_is_not_told_is_left_to_the_candidate() -> None:
    wanted = {"nvidia.com/gpumem": 3000, GPU: 1, "pods": 1}
    assert cluster(A100).refusals(Shape(wanted)) == ()
    assert cluster(A100).fit(Shape(wanted)) == 0


def test_what_is_not_listed_is_left_to_the_candidate() -> None:
    assert cluster(T4, complete=False).refusals(pod(8)) == ()
    assert cluster().refusals(pod(1, nodeSelector={MODEL: "H100"})) == ()


def test_amounts_that_are_rounded_do_not_refuse() -> None:
    rows = cluster(nodes(node(memory=4)))
    exact = Shape({"memory": 4 * GIB + 12345})
    assert rows.refusals(exact) == ()
    assert rows.fit(exact) == 0
    assert rows.refusals(pod(memory=5)) == ("Insufficient memory on any one node",)


def test_tainted_nodes_are_for_pods_that_tolerate_the_taint() -> None:
    rows = cluster(nodes(node(8, 90), taints=(TAINT,), model="A100"), T4)
    toleration = {"key": "team", "operator": "Exists"}
    assert rows.fit(pod(4)) == 0
    assert rows.fit(pod(4, tolerations=[toleration])) == 2
    assert rows.refusals(pod(4, tolerations=[toleration])) == ()
    assert rows.refusals(pod(4)) == ("node(s) had untolerated taint {team: ml}",)
    assert rows.refusals(pod(16)) == (
        "Insufficient nvidia.com/gpu on any one node (the largest has 8 free)",
    )


def test_a_taint_by_the_name_of_a_device_is_for_those_who_do_not_ask_for_it() -> None:
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    rows = cluster(nodes(node(8, 90), taints=(taint,)))
    assert rows.refusals(pod(1, 1)) == ()
    assert rows.refusals(pod(cpu=1)) == ("node(s) had untolerated taint {nvidia.com/gpu: present}",)


def test_pods_are_too_many_in_the_words_of_the_scheduler() -> None:
    full = RowOfNodes(1, {"pods": 0, "cpu": 8000}, {"pods": 0, "cpu": 8000})
    assert cluster(nodes(full)).refusals(pod(cpu=1)) == ("Too many pods",)


def test_constraints_that_are_too_many_are_not_compared() -> None:
    with pytest.raises(ConfigError, match="use 100 at most"):
        pod(1, tolerations=[TAINT] * 101)

    expression = {"key": MODEL, "operator": "Exists"}
    with pytest.raises(ConfigError, match="use 100 at most"):
        pod(1, affinity=requires(*[expression] * 101))


def test_room_has_grown_if_a_node_has_more_than_any_had() -> None:
    former = cluster(nodes(node(4, 10), node(2, 20)))
    assert former.grew_from(None)
    assert not former.grew_from(former)
    assert not cluster(nodes(node(4, 9))).grew_from(former)
    assert cluster(nodes(node(4, 11))).grew_from(former)
    assert cluster(nodes(node(1, 1)), A100).grew_from(former)
    assert cluster(nodes(node(1, 1)), complete=False).grew_from(former)
    many = cluster(nodes(*(node(1, 100 - cpu) for cpu in range(40))))
    assert many.grew_from(cluster(nodes(node(2, 200))))
