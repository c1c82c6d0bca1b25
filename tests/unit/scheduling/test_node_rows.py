"""What is left on the nodes of a target, by what was promised since it reported them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import resources
from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.scheduling import node_rows
from vnode.scheduling.node_rows import NodeRows


def node(cpu: int, pods: int = 10) -> Resources:
    return {"cpu": cpu, "pods": pods}


def pods_that_fit(rows: NodeRows, request: Resources, reported: Resources) -> int:
    """Promise room to pods of that size for as long as it seems to be there."""
    for count in range(1000):
        if resources.insufficient(request, rows.largest(reported)):
            return count

        rows.place(count, request)

    raise AssertionError("there is always room")


@pytest.mark.parametrize(("cpu", "count"), [(20, 4), (16, 8), (11, 8), (1, 40)])
def test_as_many_pods_of_a_size_fit_as_nodes_have_room_for(cpu: int, count: int) -> None:
    rows = NodeRows([node(32)] * 4, is_complete=True)
    assert pods_that_fit(rows, node(cpu, 1), node(32)) == count


def test_of_nodes_that_were_not_reported_only_their_most_cpu_is_known() -> None:
    rows = NodeRows([node(32), node(16)], is_complete=False)
    reported = {**node(32), "memory": 7}
    assert pods_that_fit(rows, node(20, 1), reported) == 1
    assert rows.largest(reported) == {"cpu": 16, "pods": 10, "memory": 7}


_AMOUNTS = st.fixed_dictionaries({"cpu": st.integers(0, 40), "pods": st.integers(0, 5)})
_NODES = st.lists(_AMOUNTS, min_size=1, max_size=5)
_REQUESTS = st.builds(lambda cpu: {"cpu": cpu, "pods": 1}, st.integers(0, 40))
_STEPS = st.lists(st.tuples(st.integers(0, 6), st.one_of(st.none(), _REQUESTS)), max_size=20)


@given(_NODES, _STEPS, st.booleans())
def test_there_is_never_more_than_was_reported_and_all_of_it_again_in_the_end(
    nodes: list[Resources], steps: list[tuple[int, Resources | None]], is_complete: bool
) -> None:
    nodes.sort(key=lambda row: -row["cpu"])
    reported = resources.largest(nodes)
    rows = NodeRows(nodes, is_complete=is_complete)
    for key, requests in steps:
        if requests is None:
            rows.withdraw(key)
        else:
            rows.place(key, requests)

        left = rows.largest(reported)
        assert not resources.insufficient(left, reported)
        assert all(amount >= 0 for amount in left.values())

    for key, _ in steps:
        rows.withdraw(key)

    assert rows.largest(reported) == reported


@given(_NODES, _REQUESTS)
def test_a_pod_that_fits_is_not_turned_away_before_anything_is_promised(
    nodes: list[Resources], requests: Resources
) -> None:
    rows = NodeRows(sorted(nodes, key=lambda row: -row["cpu"]), is_complete=True)
    if any(not resources.insufficient(requests, row) for row in nodes):
        assert not resources.insufficient(requests, rows.largest(resources.largest(nodes)))


def test_a_promise_of_few_devices_leaves_the_largest_node_whole() -> None:
    gpu = "nvidia.com/gpu"
    large, small = {**node(90_000), gpu: 8}, {**node(8000), gpu: 1}
    found = NodeRows([large, small], is_complete=True)
    found.place("p", {"cpu": 1000, "pods": 1, gpu: 1})
    assert found.largest(large)[gpu] == 8
    found.place("q", {"cpu": 1000, "pods": 1, gpu: 1})
    assert found.largest(large)[gpu] == 7


def told(*rows: RowOfNodes, complete: bool = True) -> Rows:
    nodes = sum(row.count for row in rows)
    return Rows((), frozenset({"cpu", "pods"}), (AlikeNodes({}, (), rows),), nodes, complete)


def test_a_target_that_tells_of_rows_has_as_many_nodes_as_they_say() -> None:
    rows = told(RowOfNodes(3, node(7000), node(7999)), RowOfNodes(2, node(31_000), node(31_999)))
    reported = {"cpu": 31_500, "pods": 10}
    found = node_rows.of_rows(rows, reported)
    assert found
    assert found.largest(reported) == reported
    assert pods_that_fit(found, node(20_000, 1), reported) == 2


def test_of_many_nodes_those_with_the_most_cpu_are_counted_on() -> None:
    rows = told(RowOfNodes(100, node(1000), node(1000)), RowOfNodes(1, node(9000), node(9000)))
    found = node_rows.of_rows(rows, node(9000))
    assert found
    found.place("p", node(5000, 1))
    assert found.largest(node(9000)) == {"cpu": 4000, "pods": 10}
    found.place("q", node(4000, 1))
    assert found.largest(node(9000)) == {"cpu": 1000, "pods": 10}


def test_nodes_that_are_not_all_told_are_not_counted_on() -> None:
    assert node_rows.of_rows(told(RowOfNodes(1, node(1), node(1)), complete=False), node(1)) is None
