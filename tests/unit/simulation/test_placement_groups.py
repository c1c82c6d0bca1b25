"""Rules about rollouts: each revision has a plan of its own, and may have each maximum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.placement_groups import Group, miscounted, misplaced
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.placement.status import accounts, counting
from vnode.placement.status.counting import WorkloadCounts
from vnode.planning import placeholders
from vnode.planning.policy import Clusters, PlacementTarget, Policy
from vnode.planning.policy_node import PlannedNode
from vnode.planning.seats import Share
from vnode.planning.workload import Workload

WORKLOAD = "deployment/default/web"
NODES = ("a", "b", "c")


def pod(number: int, node: str, revision: int = 0, waiting: str = "") -> Object:
    template = f"t{revision}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{template}"}
    metadata: Object = {
        "name": f"p{number}",
        "namespace": "default",
        "uid": f"p{number}",
        "creationTimestamp": f"2026-01-01T00:{revision:02}:{number:02}Z",
        "labels": {"pod-template-hash": template},
        "ownerReferences": [{**owner, "uid": template, "controller": True}],
    }
    if waiting:
        metadata["annotations"] = {keys.PLACEHOLDERS: waiting}

    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": {}}


def policy(*shares: Share) -> Policy:
    entries = tuple(
        PlacementTarget(
            Clusters(names=frozenset((s.node,))), s.weight, s.tier, s.minimum, s.maximum
        )
        for s in shares
    )
    return Policy("placementpolicy/web", "default", None, targets=entries)


def group(by: Policy, *pods: Object) -> Group:
    nodes = [PlannedNode(name, {}) for name in NODES]
    return Group(by, WORKLOAD, pods, {s.node: s for s in by.shares(nodes)}, frozenset())


def told(by: Policy, *pods: Object) -> Object:
    """Return the policy's object with the status that the agent writes."""
    counts = WorkloadCounts()
    for each in pods:
        counts.set(objects.key(each), counting.counted(each, lambda _: by))

    [tally] = counts.of(by.key).values()
    nodes = [PlannedNode(name, {}) for name in NODES]
    found = accounts.account(by, WORKLOAD, tally, nodes)
    return {"metadata": {"name": "web"}, "status": accounts.status({WORKLOAD: tally}, [found])}


MAXIMUM = policy(Share("a", maximum=1))


def test_a_cluster_may_be_planned_to_have_its_maximum_of_each_revision() -> None:
    pods = pod(0, "a"), pod(1, "", revision=1)
    assert list(miscounted(told(MAXIMUM, *pods), [group(MAXIMUM, *pods)])) == []


@pytest.mark.parametrize("revisions", [1, 2])
def test_a_status_that_plans_more_than_the_maximum_of_each_revision_is_found_out(
    revisions: int,
) -> None:
    pods = [pod(n, "", revision=n % revisions) for n in range(revisions + 1)]
    status = told(policy(Share("a")), *pods)
    [wrong] = miscounted(status, [group(MAXIMUM, *pods)])
    assert "is over a maximum" in wrong


EVEN = policy(Share("a"), Share("b"))


def test_a_placeholder_has_a_use_for_a_pod_that_its_own_revision_has_elsewhere() -> None:
    [better] = group(EVEN, pod(0, "")).parts()[0].planned
    [worse] = {"a", "b"} - {better}
    old, new = pod(0, worse, waiting=better), pod(1, "", revision=1)
    assert list(misplaced(group(EVEN, old, new))) == []


def test_a_placeholder_of_a_pod_that_runs_where_its_revision_is_planned_is_found_out() -> None:
    pods = pod(0, "a", waiting="b"), pod(1, "b"), pod(2, "", revision=1)
    [wrong] = misplaced(group(EVEN, *pods))
    assert "runs where it is planned" in wrong


SHARES = st.lists(
    st.builds(
        Share,
        st.sampled_from(NODES),
        weight=st.integers(0, 3),
        minimum=st.integers(0, 2),
        maximum=st.none() | st.integers(2, 4),
    ),
    min_size=1,
    unique_by=lambda share: share.node,
)
PODS = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(0, 2), st.sampled_from(NODES)), max_size=8
)


@given(SHARES, PODS)
def test_what_the_agent_wants_while_a_workload_is_rolled_out_breaks_no_rule(
    shares: list[Share], places: list[tuple[str, int, str]]
) -> None:
    by = policy(*shares)
    workload = Workload(WORKLOAD)
    pods = [pod(n, node, revision, waiting) for n, (node, revision, waiting) in enumerate(places)]
    for each in pods:
        workload.put(each)

    there = {share.node: share for share in by.shares([PlannedNode(n, {}) for n in NODES])}
    wanted = placeholders.wanted(workload, tuple(there.values()))
    kept = [
        pod(n, node, revision, ",".join(wanted.get(f"p{n}", ())))
        for n, (node, revision, _) in enumerate(places)
    ]
    assert list(misplaced(group(by, *kept))) == []
    if pods:
        assert list(miscounted(told(by, *pods), [group(by, *pods)])) == []
