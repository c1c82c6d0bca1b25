"""Which placeholders a plan wants: in better clusters, for pods that are out of place."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
from vnode.api.objects import Object
from vnode.planning import placeholders
from vnode.planning.cluster_choice import ClusterChoice
from vnode.planning.policy import Mode, Overflow, Policy
from vnode.planning.seats import Share
from vnode.planning.workload import Workload

NODES = "abcd"
SHARES = st.lists(
    st.builds(
        Share,
        node=st.sampled_from(NODES),
        weight=st.integers(0, 5),
        tier=st.integers(0, 2),
        minimum=st.integers(0, 2),
        maximum=st.none() | st.integers(2, 8),
    ),
    unique_by=lambda share: share.node,
    min_size=1,
).map(tuple)
PODS = st.lists(
    st.tuples(st.sampled_from(NODES), st.lists(st.sampled_from(NODES), unique=True, max_size=3)),
    max_size=20,
)


def pod(number: int, node: str, waiting: str = "") -> Object:
    created = f"2026-01-01T00:00:{number:02}Z"
    metadata: Object = {"name": f"p{number}", "uid": f"p{number}", "creationTimestamp": created}
    if waiting:
        metadata["annotations"] = {keys.PLACEHOLDERS: ",".join(waiting)}

    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": {}}


def workload(*pods: tuple[str, str]) -> Workload:
    """Return a workload of pods; each has its node and those of its placeholders, a letter each."""
    found = Workload("deployment/default/web")
    for number, (node, waiting) in enumerate(pods):
        found.put(pod(number, node, waiting))

    return found


@given(PODS, SHARES, st.sets(st.sampled_from(NODES)), st.booleans())
def test_a_placeholder_is_never_worse_nor_for_a_pod_in_its_place(pods, shares, closed, is_planned):
    there = workload(*((node, "".join(waiting)) for node, waiting in pods))
    found = placeholders.wanted(there, shares, closed=closed, is_planned=is_planned)
    assert found.keys() == {m.uid for m in there.members.values() if m.placeholders}
    by_node = {share.node: share for share in shares}
    elsewhere = sum(member.node not in by_node for member in there.members.values())
    planned = there.seats(shares).plan(len(pods) - elsewhere).planned
    count, displaced = Counter[str](), Counter[str]()
    for uid, nodes in found.items():
        member = there.members[uid]
        count.update(nodes)
        displaced[member.node] += bool(nodes)
        for node in nodes:
            assert node in member.placeholders
            assert node != member.node
            assert node not in closed
            gap = planned.get(node, 0) - there.bound[node]
            share = by_node[node]
            higher = share.tier > by_node[member.node].tier and share.weight > 0
            assert higher or not is_planned or gap > 0

    for node, number in count.items():
        most = by_node[node].maximum
        assert most is None or there.bound[node] + number <= max(most, there.bound[node])

    if is_planned:
        for node, number in displaced.items():
            assert number <= max(0, there.bound[node] - planned.get(node, 0))


@given(PODS, SHARES)
def test_what_is_wanted_is_wanted_again(pods, shares):
    first = workload(*((node, "".join(waiting)) for node, waiting in pods))
    found = placeholders.wanted(first, shares)
    left = workload(
        *((node, "".join(found.get(f"p{number}", ()))) for number, (node, _) in enumerate(pods))
    )
    again = placeholders.wanted(left, shares)
    assert again == {uid: nodes for uid, nodes in found.items() if nodes}


EXAMPLE = (Share("a", 40), Share("b", 40), Share("c", 20))


def example(*extra: tuple[str, str]) -> Workload:
    """Return 20 pods, planned 8/8/4; the third cluster runs 8, of which four have a placeholder."""
    fill = [("a", "")] * 6 + [("b", "")] * 6 + [("c", "")] * 4
    return workload(*fill, ("c", "a"), ("c", "a"), ("c", "b"), ("c", "b"), *extra)


def kept(there: Workload, shares: tuple[Share, ...] = EXAMPLE) -> Counter[str]:
    found = placeholders.wanted(there, shares)
    return Counter(node for nodes in found.values() for node in nodes)


def test_the_example_keeps_a_placeholder_for_each_pod_that_overflowed() -> None:
    assert kept(example()) == {"a": 2, "b": 2}


def test_with_fewer_replicas_none_is_out_of_place() -> None:
    there = example()
    for number in (*range(2, 6), *range(8, 12), 12, 13):
        there.remove(f"p{number}")

    assert not kept(there, (Share("a", 20), Share("b", 20), Share("c", 60)))


def test_pods_that_are_planned_for_a_gap_leave_no_room_for_placeholders() -> None:
    there = example()
    there.put(pod(30, ""))
    there.put(pod(31, ""))
    for uid in ("p30", "p31"):
        there.plan(there.members[uid], "a", ())

    # 22 are planned 9/9/4.
    assert kept(there) == {"a": 1, "b": 2}


def test_pods_that_nobody_has_looked_at_change_nothing_yet() -> None:
    there = example()
    for number in range(30, 40):
        there.put(pod(number, ""))

    assert kept(there) == {"a": 2, "b": 2}


def test_in_fill_a_pod_waits_in_all_better_clusters() -> None:
    shares = (Share("a", tier=3), Share("b", tier=2), Share("c", tier=1))
    there = workload(("a", ""), ("b", "a"), ("c", "ab"), ("c", "bd"), ("b", "c"))
    assert placeholders.wanted(there, shares) == {
        "p1": ("a",),
        "p2": ("a", "b"),
        "p3": ("b",),
        "p4": (),
    }


def test_the_pods_of_the_worst_cluster_come_first_and_the_youngest_of_each() -> None:
    shares = (Share("a", tier=3, maximum=3), Share("b", tier=2), Share("c", tier=1))
    there = workload(("a", ""), ("b", "a"), ("c", "a"), ("c", "a"))
    assert placeholders.wanted(there, shares) == {"p1": (), "p2": ("a",), "p3": ("a",)}


def test_better_are_the_planned_cluster_and_higher_tiers() -> None:
    shares = {s.node: s for s in (Share("a"), Share("b"), Share("c", tier=1), Share("d"))}
    choice = ClusterChoice("a", (("b", 1.0), ("c", 2.0), ("d", 3.0)), {}, 4, None, None)
    assert placeholders.better(choice, shares) == {
        "b": ("a", "c"),
        "c": ("a",),
        "d": ("a", "c"),
    }


def test_only_policies_with_a_plan_that_want_it_keep_any() -> None:
    def keeps(mode: Mode, wanted: bool = True) -> bool:
        overflow = Overflow(keep_unschedulable=wanted)
        return placeholders.keeps(Policy("p", "", None, mode=mode, overflow=overflow))

    assert [mode for mode in Mode if keeps(mode)] == [Mode.SPREAD, Mode.FILL]
    assert not keeps(Mode.FILL, wanted=False)
    assert not placeholders.keeps(None)
