from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from vnode.api.owners import OwnerKey
from vnode.planning.deletion_cost import HIGHEST, PlacedPod, costs
from vnode.planning.revisions import Revision
from vnode.planning.seats import Seats, Share, plan

WEIGHTED = [Share("c1", 40, minimum=2), Share("c2", 40, minimum=2), Share("c3", 20, minimum=2)]


def placed(owner: str = "rs", start: int = 0, **counts: int) -> list[PlacedPod]:
    """Return pods of an owner, so many on each node; those of later numbers are younger."""
    return [
        PlacedPod(
            f"{owner}-{node}-{number}",
            node,
            Revision("web", OwnerKey(owner)),
            f"2026-01-01T00:{start + number:02}:00Z",
        )
        for node, count in counts.items()
        for number in range(count)
    ]


def shrink(pods: list[PlacedPod], shares: list[Share], count: int) -> list[PlacedPod]:
    """Delete pods as a ReplicaSet controller does, after each of which costs are written anew."""
    pods = list(pods)
    while len(pods) > count:
        found = costs(pods, Seats(shares, "w"))
        pods.remove(min(pods, key=lambda pod: found[pod.uid]))

    return pods


def on_nodes(pods: list[PlacedPod]) -> dict[str, int]:
    return dict(Counter(pod.node for pod in pods))


def test_the_example_of_overflow_shrinks_to_the_plan() -> None:
    pods = placed(c1=6, c2=6, c3=8)
    assert on_nodes(shrink(pods, WEIGHTED, 10)) == {"c1": 4, "c2": 4, "c3": 2}
    at_once = costs(pods, Seats(WEIGHTED, "w"))
    stay = sorted(pods, key=lambda pod: -at_once[pod.uid])[:10]
    assert on_nodes(stay) == {"c1": 4, "c2": 4, "c3": 2}


def test_pods_outside_of_the_policy_and_beyond_maximums_go_first() -> None:
    shares = [Share("a", maximum=1), Share("b")]
    found = costs(placed(a=2, b=2, other=1), Seats(shares, "w"))
    assert {uid for uid, cost in found.items() if cost == 1} == {"rs-a-1", "rs-other-0"}
    assert max(found.values()) == HIGHEST


def test_a_cluster_that_has_far_more_than_its_weight_is_no_endless_search() -> None:
    found = costs(placed(a=30), Seats([Share("a", 1), Share("b", 1_000_000)], "w"))
    assert len(found) == 30


def test_of_a_clusters_pods_the_youngest_goes_first() -> None:
    found = costs(placed(a=3), Seats([Share("a")], "w"))
    assert sorted(found, key=lambda uid: found[uid]) == ["rs-a-2", "rs-a-1", "rs-a-0"]


def test_in_a_rollout_each_replica_set_shrinks_by_its_own_plan() -> None:
    old, new = placed("old", 0, c1=4, c2=4, c3=2), placed("new", 20, c1=3, c2=2, c3=2)
    found, alone = costs([*old, *new], Seats(WEIGHTED, "w")), costs(old, Seats(WEIGHTED, "w"))
    assert {uid: found[uid] for uid in alone} == alone
    assert on_nodes(sorted(new, key=lambda pod: -found[pod.uid])[:6]) == {"c1": 2, "c2": 2, "c3": 2}


def test_of_two_owners_that_are_one_workload_each_shrinks_so_that_both_are_the_plan() -> None:
    shares = [Share("a"), Share("b")]
    mine, other = placed("mine", 0, a=3, b=1), placed("other", 20, b=2)
    other = [replace(pod, revision=Revision("other", OwnerKey("other"))) for pod in other]
    found = costs([*mine, *other], Seats(shares, "w"))
    left = sorted(mine, key=lambda pod: -found[pod.uid])[:2]
    assert on_nodes([*left, *other]) == {"a": 2, "b": 2}
    assert on_nodes(left) == {"a": 2}


def test_a_pod_that_comes_last_changes_no_other_cost() -> None:
    before = costs(placed(c1=4, c2=4, c3=2), Seats(WEIGHTED, "w"))
    after = costs(placed(c1=5, c2=4, c3=2), Seats(WEIGHTED, "w"))
    assert {uid: after[uid] for uid in before} == before


def test_an_older_pod_that_comes_late_changes_no_other_cost() -> None:
    """It waited, for room or for the end of an overflow threshold, while younger ones ran."""
    seats = Seats(WEIGHTED, "w")
    pods = placed(c1=2, c3=2)
    before = costs(pods, seats)
    there = [replace(pod, cost=before[pod.uid]) for pod in pods]
    late = PlacedPod("", "c3", Revision("web", OwnerKey("rs")), "2025-12-31T00:00:00Z")
    after = costs([late, *there], seats)
    assert {uid: after[uid] for uid in before} == before
    assert after[late.uid] < min(after[pod.uid] for pod in pods if pod.node == "c3")


@st.composite
def shares_and_pods(draw: st.DrawFn) -> tuple[list[Share], list[PlacedPod]]:
    names = draw(st.lists(st.sampled_from("abcde"), min_size=1, unique=True))
    shares = []
    for name in names:
        minimum = draw(st.integers(0, 3))
        maximum = draw(st.none() | st.integers(minimum, 8))
        shares.append(
            Share(name, draw(st.integers(1, 9)), draw(st.integers(0, 2)), minimum, maximum)
        )

    counts = {name: draw(st.integers(0, 8)) for name in names}
    return shares, placed("rs", 0, **counts)


@given(shares_and_pods(), st.integers(0, 20))
def test_what_stays_is_the_plan_as_far_as_pods_are_there(
    drawn: tuple[list[Share], list[PlacedPod]], count: int
) -> None:
    shares, pods = drawn
    stay = Counter(on_nodes(shrink(pods, shares, count)))
    there = Counter(on_nodes(pods))
    wanted = plan(count, shares, "w").planned
    assert stay.total() == min(count, there.total())
    if all(there[node] >= number for node, number in wanted.items()):
        assert all(stay[node] >= number for node, number in wanted.items())

    for share in shares:  # minimums hold as long as all that stay are not needed for others'
        floor = min(share.minimum, there[share.node])
        if count >= sum(min(s.minimum, there[s.node]) for s in shares):
            assert stay[share.node] >= floor
