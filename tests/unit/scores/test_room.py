"""Scores of what targets report: the published formula, without what is wrong with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.scores import room
from vnode.scores.config import PUBLISHED, PublishedResource
from vnode.scores.room import ReportedRoom

GPU, MODEL = "nvidia.com/gpu", "nvidia.com/gpu.product"
GIB = 1024**3
TAINT = {"key": "dedicated", "effect": "NoSchedule"}
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), st.integers(-(10**6), 10**15))


def nodes(
    count: int, *, model: str = "", taints: tuple[dict[str, str], ...] = (), **free: int
) -> AlikeNodes:
    """Return nodes that have so much free; `gpus` are GPUs."""
    amounts = {GPU if name == "gpus" else name: amount for name, amount in free.items()}
    row = RowOfNodes(count, amounts, amounts)
    return AlikeNodes({MODEL: model} if model else {}, taints, (row,))


def report(*alike: AlikeNodes, complete: bool = True, **sums: Resources) -> ReportedRoom:
    free: Resources = {}
    largest: Resources = {}
    for each in alike:
        for row in each.rows:
            for name, amount in row.free.items():
                free[name] = free.get(name, 0) + amount * row.count
                largest[name] = max(largest.get(name, 0), amount)

    told = frozenset(free)
    rows = Rows((MODEL,), told, alike, sum(r.count for a in alike for r in a.rows), complete)
    return ReportedRoom(sums.get("free", free), sums.get("largest", largest), rows)


def of(*published: PublishedResource, **reports: ReportedRoom) -> dict[str, dict[str, int]]:
    return room.scores(reports, published or PUBLISHED, {})


def test_the_example_of_the_collector() -> None:
    made = of(t=report(nodes(1, gpus=6), nodes(1, gpus=6)))["t"]
    assert made["gpuNodeAvailable"] == -40
    assert made["gpuClusterAvailable"] == 20


def test_there_are_four_names_for_each_resource() -> None:
    made = of(t=report(nodes(1, cpu=8000, memory=GIB)))["t"]
    assert set(made) == {
        f"{name}{scope}{scale}"
        for name in ("cpu", "mem", "gpu", "tpu")
        for scope in ("NodeAvailable", "ClusterAvailable")
        for scale in ("", "Relative")
    }
    assert made["tpuClusterAvailable"] == -100


def test_memory_counts_in_bytes() -> None:
    made = of(a=report(nodes(1, memory=256 * GIB)), b=report(nodes(2, memory=512 * GIB)))
    assert made["a"]["memNodeAvailable"] == -50
    assert made["b"]["memNodeAvailable"] == 0
    assert made["b"]["memClusterAvailable"] == 100


def test_tainted_nodes_count_for_devices_only() -> None:
    made = of(
        t=report(nodes(2, cpu=10_000, gpus=0), nodes(1, cpu=80_000, gpus=8, taints=(TAINT,)))
    )["t"]
    assert made["cpuNodeAvailable"] == -80
    assert made["cpuClusterAvailable"] == -60
    assert made["gpuNodeAvailable"] == -20


def test_a_model_has_scores_of_its_own_where_nodes_are_told() -> None:
    h100 = PublishedResource("h100", GPU, 8, "H100")
    several = report(nodes(3, gpus=8, model="T4"), nodes(2, gpus=1, model="H100"))
    made = of(h100, t=several, sums=ReportedRoom({GPU: 8}, {GPU: 8}))
    assert made["t"]["h100NodeAvailable"] == -75
    assert made["t"]["h100ClusterAvailable"] == -50
    assert made["sums"] == {}


def test_nodes_that_are_not_all_listed_leave_sums() -> None:
    sums = {"free": {"cpu": 50_000}, "largest": {"cpu": 10_000}}
    some = report(nodes(1, cpu=1000, taints=(TAINT,)), complete=False, **sums)
    made = of(t=some)["t"]
    assert (made["cpuNodeAvailable"], made["cpuClusterAvailable"]) == (-80, 0)


def test_relative_scores_are_those_among_all_targets() -> None:
    made = of(**{name: report(nodes(1, gpus=n)) for name, n in (("a", 4), ("b", 8), ("c", 16))})
    name = "gpuNodeAvailableRelative"
    assert {target: found[name] for target, found in made.items()} == {
        "a": -100,
        "b": -33,
        "c": 100,
    }


@given(st.dictionaries(st.text(), st.tuples(AMOUNTS, AMOUNTS), max_size=5))
def test_whatever_targets_report_scores_are_within_their_range(
    reports: dict[str, tuple[Resources, Resources]],
) -> None:
    made = room.scores({t: ReportedRoom(*amounts) for t, amounts in reports.items()}, PUBLISHED, {})
    assert made.keys() == reports.keys()
    assert all(-100 <= value <= 100 for found in made.values() for value in found.values())


def test_what_a_namespaces_own_target_claims_makes_no_other_score_smaller() -> None:
    free = {"least": 10, "most": 100, "claims": 10**15, "modest": 55, "others": 10}
    reports = {target: ReportedRoom({GPU: gpus}, {GPU: gpus}) for target, gpus in free.items()}
    own = {"claims": "team-a", "modest": "team-a", "others": "team-b"}
    made = room.scores(reports, PUBLISHED, own)
    found = {target: scores["gpuClusterAvailableRelative"] for target, scores in made.items()}
    assert found == {"least": -100, "most": 100, "claims": 100, "modest": -99, "others": -100}
