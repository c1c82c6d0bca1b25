"""What is left on rows, by what was promised to pods with devices since a target reported them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scheduling import costs
from tests.unit.scheduling.gpu_targets import GPU, MODEL, add_target, gpu_pod, reason
from vnode.api import shape
from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.api.shape import Shape
from vnode.scheduling.cache import Cache
from vnode.scheduling.promised_rows import PromisedRows


def row(count: int, gpus: int, cpu: int = 64_000) -> RowOfNodes:
    free = {"cpu": cpu, "pods": 10, GPU: gpus}
    return RowOfNodes(count, free, free)


def told(*models: tuple[str, tuple[RowOfNodes, ...]], complete: bool = True) -> Rows:
    alike = tuple(AlikeNodes({MODEL: model}, (), rows) for model, rows in models)
    nodes = sum(row.count for each in alike for row in each.rows)
    return Rows((MODEL,), frozenset({"cpu", "pods", GPU}), alike, nodes, complete)


def wanted(gpus: int, model: str = "", cpu: int = 1000) -> Shape:
    requests: Resources = {"cpu": cpu, "pods": 1, GPU: gpus}
    return shape.of_spec(requests, {"nodeSelector": {MODEL: model} if model else {}})


def histogram(rows: Rows) -> dict[str, dict[int, int]]:
    return rows.histogram(GPU)


def test_a_promise_counts_on_the_fullest_node_of_its_model() -> None:
    rows = PromisedRows(told(("A100", (row(2, 8),)), ("T4", (row(1, 4),))))
    rows.place("p", wanted(2, "A100"))
    assert histogram(rows.left()) == {"A100": {8: 1, 6: 1}, "T4": {4: 1}}
    rows.place("q", wanted(4, "A100"))
    assert histogram(rows.left()) == {"A100": {8: 1, 2: 1}, "T4": {4: 1}}
    rows.place("r", wanted(1))
    assert histogram(rows.left()) == {"A100": {8: 1, 1: 1}, "T4": {4: 1}}
    assert rows.largest() == {GPU: 8}


def test_what_is_withdrawn_is_free_again() -> None:
    reported = told(("A100", (row(2, 8),)))
    rows = PromisedRows(reported)
    rows.place("p", wanted(2))
    rows.place("q", wanted(2))
    rows.withdraw("p")
    assert histogram(rows.left()) == {"A100": {8: 1, 6: 1}}
    rows.withdraw("q")
    rows.withdraw("q")
    assert rows.left() is reported


def test_a_promise_looks_at_nodes_of_equal_promises_as_one() -> None:
    """The thousandth pod of a gang with all devices of a node took eight milliseconds."""

    def cost(promised: int, gpus: int) -> int:
        rows = PromisedRows(told(("A100", (row(5000, 8),))))
        for number in range(promised):
            rows.place(number, wanted(gpus))

        found = costs.bytecodes(lambda: rows.place("next", wanted(gpus)))
        return found + costs.bytecodes(rows.left) + costs.bytecodes(lambda: rows.withdraw("next"))

    assert cost(1000, 8) < 1.5 * cost(10, 8)
    assert cost(2000, 4) < 1.5 * cost(10, 4)


def test_a_promise_that_fits_nowhere_counts_nowhere() -> None:
    reported = told(("A100", (row(2, 8),)))
    rows = PromisedRows(reported)
    rows.place("p", wanted(9))
    rows.place("q", wanted(1, "H100"))
    rows.place("r", wanted(1, cpu=65_000))
    assert rows.left() is reported


def test_of_nodes_that_are_not_all_told_the_largest_is_not_known() -> None:
    assert PromisedRows(told(("A100", (row(2, 8),)), complete=False)).largest() == {}


_STEPS = st.lists(
    st.tuples(st.integers(0, 6), st.none() | st.integers(1, 5), st.sampled_from(["", "A", "B"])),
    max_size=30,
)


@given(_STEPS)
def test_what_is_left_is_what_is_not_promised(
    steps: list[tuple[int, int | None, str]],
) -> None:
    reported = told(("A", (row(2, 8), row(1, 3))), ("B", (row(2, 4),)))
    rows, placed = PromisedRows(reported), dict[int, int]()
    for key, gpus, model in steps:
        placed.pop(key, None)
        before = sum(count for each in histogram(rows.left()).values() for count in each.values())
        if gpus is None:
            rows.withdraw(key)
        else:
            rows.withdraw(key)
            fits = rows.left().fit(wanted(gpus, model))
            rows.place(key, wanted(gpus, model))
            if fits:
                placed[key] = gpus

        left = histogram(rows.left())
        assert sum(count for each in left.values() for count in each.values()) == before
        assert sum(g * n for each in left.values() for g, n in each.items()) == 27 - sum(
            placed.values()
        )

    for key, _, _ in steps:
        rows.withdraw(key)

    assert rows.left() is reported


def test_the_last_large_node_of_a_model_is_promised_once() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 64, "A100"), (8, 64, "T4"))
    large = gpu_pod(8, nodeSelector={MODEL: "A100"})
    assert reason(cache, large) == ""
    large["metadata"]["uid"] = "q"
    cache.assume(large, "t1", now=0)
    assert reason(cache, large) == (
        "Insufficient nvidia.com/gpu on any one node with nvidia.com/gpu.product=A100 "
        "(the largest has 0 free)"
    )
    assert reason(cache, gpu_pod(8, nodeSelector={MODEL: "T4"})) == ""
    cache.forget("q", "t1")
    assert reason(cache, large) == ""


def test_a_promise_of_one_model_does_not_keep_pods_from_another() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 64, "A100"), (4, 64, "T4"))
    for number in range(2):  # both on the A100s, which others leave alone
        promised = gpu_pod(4, nodeSelector={MODEL: "A100"})
        promised["metadata"]["uid"] = f"q{number}"
        cache.assume(promised, "t1", now=0)

    assert reason(cache, gpu_pod(4, nodeSelector={MODEL: "T4"})) == ""


def test_promises_count_on_later_reports_until_these_include_them() -> None:
    cache = Cache()
    add_target(cache, "t1", (8, 64, "A100"))
    promised = gpu_pod(8)
    promised["metadata"]["uid"] = "q"
    cache.assume(promised, "t1", now=0)
    add_target(cache, "t1", (8, 64, "A100"))
    assert reason(cache, gpu_pod(1)) != ""
    cache.observe("q", "t1", now=1)
    add_target(cache, "t1", (8, 64, "A100"))  # it has ended by then
    assert reason(cache, gpu_pod(8)) == ""
