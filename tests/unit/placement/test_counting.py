"""Counts that are kept one change at a time are those of counting afresh; accounts add up."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
from vnode.api.owners import OwnerKey
from vnode.placement.status import accounts
from vnode.placement.status.accounts import account
from vnode.placement.status.counting import CountedPod, WorkloadCounts, WorkloadTally
from vnode.planning import policy_node
from vnode.planning.policy import Clusters, Mode, PlacementTarget, Policy
from vnode.planning.policy_node import PlannedNode
from vnode.planning.revisions import Revision

PODS = st.builds(
    CountedPod,
    policy=st.sampled_from(["p", "q"]),
    workload=st.sampled_from(["w", "x"]),
    namespace=st.just("default"),
    uid=st.sampled_from("12"),
    node=st.sampled_from(["", "a", "b"]),
    runs=st.booleans(),
    placeholders=st.lists(st.sampled_from("cd"), unique=True).map(tuple),
    created=st.just(""),  # the newest that there ever was counts, which counting afresh cannot know
)
CHANGES = st.lists(st.tuples(st.sampled_from("abcdef"), PODS | st.none()), max_size=30)


@given(CHANGES)
def test_each_change_is_counted_and_told(changes: list[tuple[str, CountedPod | None]]) -> None:
    counts, present = WorkloadCounts(), dict[str, CountedPod]()
    for key, pod in changes:
        before = present.pop(key, None)
        if pod is not None:
            present[key] = pod

        changed = counts.set(key, pod)
        assert changed == ({p.policy for p in (before, pod) if p} if before != pod else set())

    afresh = WorkloadCounts()
    for key, pod in present.items():
        afresh.set(key, pod)

    assert len(counts) == len(present)
    assert set(counts.keys()) == present.keys()
    for policy in "pq":
        assert counts.of(policy) == afresh.of(policy)
        assert sum(t.replicas for t in counts.of(policy).values()) == sum(
            pod.policy == policy for pod in present.values()
        )


NODES = st.lists(
    st.builds(
        PlannedNode,
        name=st.sampled_from("abcd"),
        labels=st.sampled_from([{}, {keys.TARGET_NAMESPACE: "other"}]),
        takes_pods=st.booleans(),
    ),
    unique_by=lambda node: node.name,
)
HOLDING = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 5))


@given(NODES, HOLDING, HOLDING, st.integers(0, 5), st.sampled_from(Mode), st.integers(0, 8))
def test_what_is_planned_and_what_is_not_makes_all_replicas(
    nodes: list[PlannedNode],
    running: dict[str, int],
    starting: dict[str, int],
    unbound: int,
    mode: Mode,
    maximum: int,
) -> None:
    entries = tuple(
        PlacementTarget(Clusters(names=frozenset((name,))), 1, maximum=maximum) for name in "abcd"
    )
    tally = WorkloadTally("default", sum(running.values()) + sum(starting.values()) + unbound)
    tally.running, tally.starting = Counter(running), Counter(starting)
    policy = Policy("placementpolicy/p", "default", None, mode, targets=entries)
    found = account(policy, "w", tally, nodes)
    assert {t.cluster: t.running for t in found.targets if t.running} == running
    assert {t.cluster: t.waiting for t in found.targets if t.waiting} == starting
    planned = {t.cluster: t.planned for t in found.targets if t.planned is not None}
    bound = tally.running + tally.starting
    included = {n.name for n in policy_node.covering(nodes, "default")}
    homes = bound.keys() & included & set("abcd") if maximum >= tally.replicas else set()
    if mode is Mode.ANY or (mode is Mode.SINGLE and not homes):
        assert not planned
        return

    stray = 0 if mode is Mode.SINGLE else sum(n for c, n in bound.items() if c not in included)
    assert sum(planned.values()) + found.unplaced + stray == tally.replicas
    if mode is not Mode.SINGLE:
        for node in nodes:
            most = maximum if node.takes_pods else bound[node.name]
            assert planned.get(node.name, 0) <= most


def test_a_status_lists_no_more_clusters_than_it_has_room_for() -> None:
    targets = tuple(accounts.ClusterAccount(f"c{n}", 1, 0, 0) for n in range(600))
    listed = [accounts.WorkloadAccount(f"w{n}", 600, targets) for n in range(3)]
    status = accounts.status({}, listed)
    sizes = [len(entry["targets"]) for entry in status["workloads"]]
    assert sizes == [600, 400, 0]


def revised(owner: str, number: int, node: str) -> CountedPod:
    """Return a pod of a ReplicaSet."""
    revision, created = (
        Revision("deployment/default/w", OwnerKey(owner)),
        f"2026-01-01T00:00:{number:02}Z",
    )
    return CountedPod(
        "p",
        "w",
        "default",
        f"{owner}-{number}",
        node,
        runs=True,
        revision=revision,
        created=created,
    )


def test_while_a_workload_is_rolled_out_the_plan_is_that_of_each_revision() -> None:
    entries = tuple(
        PlacementTarget(Clusters(names=frozenset((name,))), weight, minimum=2)
        for name, weight in (("a", 40), ("b", 40), ("c", 20))
    )
    policy = Policy("placementpolicy/p", "default", None, targets=entries)
    counts = WorkloadCounts()
    for owner, places in (("old", "aaabbcc"), ("new", "aabbcc")):
        for number, node in enumerate(places, 10 if owner == "new" else 0):
            pod = revised(owner, number, node)
            counts.set(pod.uid, pod)

    nodes = [PlannedNode(name, {}) for name in "abc"]
    tally = counts.of("p")["w"]
    found = account(policy, "w", tally, nodes)
    assert sum(target.planned or 0 for target in found.targets) == 13
    assert {abs(target.difference or 0) for target in found.targets} <= {0, 1}
    scaled = account(policy, "w", tally.scaled(20), nodes)
    assert sum(target.planned or 0 for target in scaled.targets) == 20
    for number, node in enumerate("aaabbcc"):
        counts.set(revised("old", number, node).uid, None)

    assert all(target.difference == 0 for target in account(policy, "w", tally, nodes).targets)
