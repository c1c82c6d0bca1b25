"""Rows are true of the nodes that they are built from, and bounded."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import objects, resources, rows_text, shape, taints
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import MODEL_LABELS, Rows
from vnode.api.shape import Shape
from vnode.nodes import capacity, row_building

MODEL, GPU = "nvidia.com/gpu.product", "nvidia.com/gpu"
TAINT = {"key": "team", "value": "ml", "effect": "NoSchedule"}
SOFT = {"key": "soft", "effect": "PreferNoSchedule"}
GIB = 2**30

Cluster = list[tuple[Object, Resources]]


def make_node(name: str, labels: dict[str, str], present: Sequence[Object] = ()) -> Object:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(present)}}


def text_of(cluster: Cluster) -> str:
    free = {objects.name(node): amounts for node, amounts in cluster}
    return row_building.build([node for node, _ in cluster], free, MODEL_LABELS)


def rows_of(cluster: Cluster) -> Rows:
    found = rows_text.decode(text_of(cluster))
    assert found
    return found


def on_each(cluster: Cluster, wanted: Shape) -> list[int]:
    """Count the pods of a shape that fit on each node, as kube-scheduler would."""
    return [
        min((free.get(name, 0) // amount for name, amount in wanted.wanted.items()), default=0)
        for node, free in cluster
        if wanted.selector.matches(objects.labels(node))
        and taints.untolerated(objects.spec(node)["taints"], wanted.tolerations) is None
    ]


amounts = st.fixed_dictionaries(
    {
        "cpu": st.integers(0, 4) | st.integers(0, 200_000),
        "memory": st.integers(0, 3 * GIB) | st.integers(0, 1024 * GIB),
        "pods": st.integers(0, 110),
    },
    optional={GPU: st.integers(0, 8), "nvidia.com/mig-1g.5gb": st.integers(0, 3)},
)
made = st.tuples(
    st.sampled_from([{}, {MODEL: "A100"}, {MODEL: "T4", "zone": "a"}, {"zone": "b"}]),
    st.sampled_from([(), (TAINT,), (SOFT,), (TAINT, SOFT)]),
    amounts,
)
clusters = st.lists(made, max_size=40).map(
    lambda parts: [
        (make_node(f"n{place}", labels, present), free)
        for place, (labels, present, free) in enumerate(parts)
    ]
)
shapes = st.builds(
    lambda wanted, model, tolerates: shape.of_spec(
        {**wanted, "pods": 1},
        {
            "nodeSelector": {MODEL: model} if model else {},
            "tolerations": [{"key": "team", "operator": "Exists"}] if tolerates else [],
        },
    ),
    st.fixed_dictionaries(
        {"cpu": st.integers(0, 100_000), "memory": st.integers(0, 500 * GIB)},
        optional={GPU: st.integers(0, 9), "nvidia.com/mig-1g.5gb": st.integers(0, 3)},
    ),
    st.sampled_from(["", "A100", "T4", "H100"]),
    st.booleans(),
)


@given(clusters, shapes)
def test_rows_never_promise_more_than_the_nodes_have(cluster: Cluster, wanted: Shape) -> None:
    rows, fitting = rows_of(cluster), on_each(cluster, wanted)
    assert rows.fit(wanted) <= sum(fitting)
    largest = rows.largest(wanted)
    assert (largest.holds(wanted) if largest else 0) <= max(fitting, default=0)
    for name in wanted.wanted:
        most = max((free.get(name, 0) for _, free in cluster), default=0)
        assert largest is None or largest.free.get(name, 0) <= most


@given(clusters, shapes)
def test_rows_never_refuse_what_a_node_could_hold(cluster: Cluster, wanted: Shape) -> None:
    if any(on_each(cluster, wanted)):
        assert rows_of(cluster).refusals(wanted) == ()


@given(clusters, st.randoms(use_true_random=False))
def test_the_order_of_nodes_does_not_matter(cluster: Cluster, chance: random.Random) -> None:
    shuffled = list(cluster)
    chance.shuffle(shuffled)
    assert text_of(shuffled) == text_of(cluster)


@given(clusters)
def test_few_nodes_are_told_as_they_are(cluster: Cluster) -> None:
    rows = rows_of(cluster[:8])
    assert rows.complete
    assert rows.nodes == sum(row.count for alike in rows.alike for row in alike.rows)
    free = sorted(
        tuple(row.free.get(name, 0) for name in ("cpu", "pods", GPU))
        for alike in rows.alike
        for row in alike.rows
        for _ in range(row.count)
    )
    assert free == sorted(
        tuple(amounts.get(name, 0) for name in ("cpu", "pods", GPU)) for _, amounts in cluster[:8]
    )


def varied(count: int, chance: random.Random, **more: Any) -> Cluster:
    """Make nodes with 8 devices, of which no two have the same free."""
    return [
        (
            make_node(f"n{place}", {MODEL: chance.choice(["A100", "H100", "T4"])}, (TAINT,)),
            {
                "cpu": chance.randrange(96_000),
                "memory": chance.randrange(1000 * GIB),
                "pods": chance.randrange(110),
                "ephemeral-storage": chance.randrange(1000 * GIB),
                GPU: chance.randrange(9),
                **more,
            },
        )
        for place in range(count)
    ]


def test_a_summary_of_200_nodes_with_8_devices_is_at_most_4_kib() -> None:
    chance = random.Random(1)
    usage = capacity.Usage()
    nodes = []
    for node, free in varied(200, chance):
        name = objects.name(node)
        offered = resources.format_list({**free, GPU: 8, "pods": 110, "hugepages-1Gi": 0})
        ready = [{"type": "Ready", "status": "True"}]
        node["status"] = {"capacity": offered, "allocatable": offered, "conditions": ready}
        node["metadata"]["labels"] |= {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        nodes.append(capacity.trim_node(node))
        container = {"resources": {"requests": {GPU: str(chance.randrange(9))}}}
        pod = {"metadata": {"name": name}, "spec": {"nodeName": name, "containers": [container]}}
        usage.change(None, capacity.trim_pod(pod))

    made = capacity.summary(nodes, usage)
    assert len(json.dumps(made, separators=(",", ":"))) <= 4096


def test_however_many_nodes_differ_rows_are_bounded_and_complete() -> None:
    text = text_of(varied(3000, random.Random(2)))
    found = rows_text.decode(text)
    assert found
    assert found.complete
    assert len(text) < 4096
    assert sum(row.count for alike in found.alike for row in alike.rows) == 3000


def test_nodes_without_devices_do_not_blur_those_that_have_some() -> None:
    chance = random.Random(3)
    plain = [
        (make_node(f"p{n}", {}), {"cpu": chance.randrange(64_000), "memory": n * GIB, "pods": n})
        for n in range(500)
    ]
    device = (make_node("d", {MODEL: "A100"}), {"cpu": 12_345, "pods": 7, GPU: 8})
    found = rows_of([*plain, device])
    (row,) = next(alike.rows for alike in found.alike if alike.labels)
    assert row.free["cpu"] == 12_345
    assert found.complete


def test_what_there_is_no_space_for_is_left_out_and_said() -> None:
    kinds = [(make_node(f"n{n}", {MODEL: f"m{n}"}), {"cpu": 1000, GPU: 1}) for n in range(40)]
    assert not rows_of(kinds).complete
    sets: Cluster = [
        (make_node(f"n{n}", {}, [{**TAINT, "value": str(n)}]), {"cpu": 1}) for n in range(20)
    ]
    assert not rows_of(sets).complete
    many = {f"example.com/device-{n}": n for n in range(30)}
    assert not rows_of([(make_node("n", {}), many)]).complete
    devices: Cluster = [
        (make_node(f"n{n}", {}), {"example.com/a": n, "example.com/b": -n % 97})
        for n in range(1000)
    ]
    rows = rows_of(devices)
    assert not rows.complete
    assert 0 < sum(len(alike.rows) for alike in rows.alike) <= rows_text.MOST_ROWS
