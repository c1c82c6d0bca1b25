"""Which accelerators targets have, and how many pods of them fit, by all that a target may say."""

from __future__ import annotations

import json

from vnode.api import keys
from vnode.api.objects import Object
from vnode.cli.top.accelerators import Reading
from vnode.insight import accelerators
from vnode.insight.accelerators import AcceleratorUse
from vnode.nodes import capacity
from vnode.nodes.capacity import Usage

GPU, MODEL, NIC = "nvidia.com/gpu", "nvidia.com/gpu.product", "example.com/nic"


def make_node(name: str, model: str = "", **devices: str) -> Object:
    named = {"gpu": GPU, "nic": NIC}
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    amounts |= {named[key]: amount for key, amount in devices.items()}
    return {
        "metadata": {"name": name, "labels": {MODEL: model} if model else {}},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod_on(node: str, gpus: int) -> Object:
    requests = {"pods": 1, GPU: gpus}
    return {"metadata": {"name": node}, "spec": {"nodeName": node}, "requests": requests}


def summary_of(*nodes: Object, taken: Object | None = None) -> Object:
    usage = Usage()
    if taken:
        usage.change(None, taken)

    return capacity.summary(map(capacity.trim_node, nodes), usage)


def uses_of(
    summary: Object | None, *, runs_vnode: bool = True, pools: str = ""
) -> list[AcceleratorUse]:
    node = {"metadata": {"labels": {MODEL: "T4"}}, "status": {"allocatable": {GPU: "3"}}}
    target = {"metadata": {"name": "gpu", "annotations": {keys.NODE_POOLS: pools}}}
    return accelerators.of_target(target, node, summary, runs_vnode=runs_vnode)


def test_rows_tell_models_apart_and_what_is_free_on_one_node() -> None:
    summary = summary_of(
        make_node("a", "A100", gpu="8"),
        make_node("b", "A100", gpu="8"),
        make_node("c", "T4", gpu="1", nic="2"),
        make_node("d"),
        taken=pod_on("a", 5),
    )
    assert uses_of(summary) == [
        AcceleratorUse("gpu", NIC, "T4", 2, 2, 2, (2, 1, 0, 0)),
        AcceleratorUse("gpu", GPU, "A100", 16, 11, 8, (11, 5, 2, 1)),
        AcceleratorUse("gpu", GPU, "T4", 1, 1, 1, (1, 0, 0, 0)),
    ]


def test_models_of_which_nothing_is_free_are_told_too() -> None:
    summary = summary_of(make_node("a", "A100", gpu="8"), taken=pod_on("a", 8))
    assert uses_of(summary) == [AcceleratorUse("gpu", GPU, "A100", 8, 0, 0, (0, 0, 0, 0))]


def test_sums_are_bounds() -> None:
    summary = summary_of(make_node("a", "A100", gpu="8"), make_node("b", "A100", gpu="3"))
    del summary["metadata"]["annotations"][keys.ROWS]
    [use] = uses_of(summary)
    assert use == AcceleratorUse("gpu", GPU, "A100", 11, 11, 8, (11, 5, 2, 1), bound="<=")
    assert use.text(use.free) == "<=11"


def test_rows_that_are_not_complete_are_bounds_as_well() -> None:
    summary = summary_of(make_node("a", "A100", gpu="8"))
    annotations = summary["metadata"]["annotations"]
    told = json.loads(annotations[keys.ROWS]) | {"complete": False}
    annotations[keys.ROWS] = json.dumps(told)
    assert [use.bound for use in uses_of(summary)] == [">="]


def test_what_a_vnode_has_said_that_has_left_does_not_count() -> None:
    summary = summary_of(make_node("a", "A100", gpu="8"))
    [use] = uses_of(summary, runs_vnode=False)
    assert use == AcceleratorUse("gpu", GPU, "A100", 8)
    assert use.text(use.free) == "<unknown>"


def test_of_a_target_that_says_nothing_the_virtual_node_is_shown() -> None:
    assert uses_of(None) == [AcceleratorUse("gpu", GPU, "T4", 3)]


def test_the_table_has_a_line_for_each_model_and_says_what_was_not_asked() -> None:
    summary = summary_of(make_node("a", "A100", gpu="8"))
    reading = Reading((*uses_of(summary), *uses_of(None)), ("far was not asked what is free: x",))
    assert [line.split() for line in reading.text().splitlines()[1:]] == [
        ["gpu", GPU, "A100", "8", "8", "8", "8", "4", "2", "1", "<none>"],
        ["gpu", GPU, "T4", "3", *["<unknown>"] * 6, "<none>"],
        ["far", "was", "not", "asked", "what", "is", "free:", "x"],
    ]
    first, second = reading.as_object()["items"]
    assert (first["largestNode"], first["fits"]["4"]) == (8, 2)
    assert (second["total"], second["fits"]) == (3, None)


def test_pools_may_add_devices_of_models_that_are_there_or_not() -> None:
    pools = json.dumps(
        [
            {"labels": {MODEL: "A100"}, "allocatable": {GPU: 8}, "max": 3},
            {"labels": {MODEL: "H100"}, "allocatable": {GPU: 4}, "max": 2},
        ]
    )
    summary = summary_of(make_node("a", "A100", gpu="8"), taken=pod_on("a", 8))
    assert uses_of(summary, pools=pools) == [
        AcceleratorUse("gpu", GPU, "A100", 8, 0, 0, (0, 0, 0, 0), growth=16),
        AcceleratorUse("gpu", GPU, "H100", 0, 0, 0, (0, 0, 0, 0), growth=8),
    ]
    assert [use.growth for use in uses_of(summary, pools="[")] == [0]


def test_a_fleet_without_accelerators_is_said_to_be_one() -> None:
    assert Reading((), ()).text() == "No target says that it has accelerators."
