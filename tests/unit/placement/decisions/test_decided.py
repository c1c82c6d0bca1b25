"""Only clusters that a decision is for get pods, and Fill takes them in its order."""

from __future__ import annotations

import pytest

from tests.unit.placement.observed_changes import observe
from vnode.api import keys
from vnode.planning import seats
from vnode.planning.cluster_decision import (
    ClusterDecision,
    DecidedCluster,
    DecisionKind,
    DecisionReference,
)
from vnode.planning.move_policy import RescheduleTrigger
from vnode.planning.plan_changes import PlanChanges
from vnode.planning.policy import Clusters, Mode, PlacementTarget, Policy
from vnode.planning.policy_node import PlannedNode

WEB = DecisionReference(DecisionKind.PLACEMENT, "default", "web")
NODES = [PlannedNode(f"node-{name}", {keys.CLUSTER_TARGET_NAME: name}) for name in "abc"]
KEY = "default/web"


def decision(*names: str) -> ClusterDecision:
    return ClusterDecision(WEB, tuple(map(DecidedCluster, names)))


def policy(*names: str, mode: Mode = Mode.FILL, triggers: str = "") -> Policy:
    wanted = frozenset(map(RescheduleTrigger, triggers.split()))
    name = "placementpolicy/web"
    return Policy(name, "default", None, mode, reschedule=wanted, decision=decision(*names))


def planned(of: Policy, replicas: int) -> dict[str, int]:
    return dict(seats.plan(replicas, of.shares(NODES), "w").planned)


@pytest.mark.parametrize("mode", list(Mode))
def test_only_decided_clusters_are_of_the_policy(mode: Mode) -> None:
    assert [share.node for share in policy("c", "a", "x", mode=mode).shares(NODES)] == [
        "node-a",
        "node-c",
    ]
    assert policy(mode=mode).shares(NODES) == ()


def test_the_label_of_a_cluster_comes_before_the_name_of_its_target() -> None:
    node = PlannedNode("n", {keys.TARGET_NAME: "b", keys.OCM_CLUSTER_NAME: "berlin"})
    assert decision("paris", "berlin").position(node) == 1
    assert decision("b").position(node) is None


def test_profiles_stand_for_the_nodes_of_their_targets() -> None:
    clusters = (
        DecidedCluster("fleet/x", frozenset({"node-b", "node-z"})),
        DecidedCluster("fleet/a", frozenset()),
    )
    found = ClusterDecision(WEB, clusters)
    assert [found.position(node) for node in NODES] == [None, 0, None]
    assert found.without_nodes(NODES) == ["fleet/a"]


def test_fill_takes_clusters_in_their_order() -> None:
    assert planned(policy("c", "a"), 3) == {"node-c": 3}
    capped = PlacementTarget(Clusters(), maximum=2)
    one = Policy("p", "default", None, Mode.FILL, targets=(capped,), decision=decision("c", "b"))
    assert planned(one, 3) == {"node-c": 2, "node-b": 1}


def test_entries_and_priorities_of_the_policy_come_before_that_order() -> None:
    entries = tuple(
        PlacementTarget(Clusters(names=frozenset(names)), tier=tier, maximum=1)
        for names, tier in (("b", 0), ("ac", 0), ("x", 0))
    )
    of = Policy("p", "d", None, Mode.FILL, targets=entries, decision=decision("c", "a", "b"))
    assert planned(of, 1) == {"node-b": 1}
    assert planned(of, 2) == {"node-b": 1, "node-c": 1}
    preferred = PlacementTarget(Clusters(names=frozenset("a")), tier=1)
    of = Policy(
        "p", "d", None, Mode.FILL, targets=(*entries[:1], preferred), decision=decision("b", "a")
    )
    assert planned(of, 2) == {"node-a": 2}


def test_order_means_nothing_in_other_modes() -> None:
    shares = policy("a", "b", mode=Mode.SPREAD).shares(NODES)
    assert shares == policy("b", "a", mode=Mode.SPREAD).shares(NODES)


def test_a_node_is_rejected_in_words() -> None:
    assert policy("a").rejects(NODES[0]) == ""
    assert policy("a").rejects(NODES[1]) == "placement/default/web selects other clusters"
    assert policy().rejects(NODES[1]) == "placement/default/web selects no clusters"


ALL = "PolicyChanged ClusterJoined LabelsChanged DecisionChanged"


@pytest.mark.parametrize(
    ("before", "after", "mode", "triggers", "change"),
    [
        ("a", "b", Mode.SPREAD, ALL, RescheduleTrigger.DECISION),
        ("ab", "a", Mode.SPREAD, ALL, RescheduleTrigger.DECISION),
        ("ab", "ba", Mode.SPREAD, ALL, None),
        ("ab", "ba", Mode.FILL, ALL, RescheduleTrigger.DECISION),
        ("ax", "ay", Mode.SPREAD, ALL, None),
        ("a", "", Mode.SPREAD, ALL, RescheduleTrigger.DECISION),
        ("a", "b", Mode.SPREAD, "", None),
        ("a", "b", Mode.SPREAD, "ClusterJoined", RescheduleTrigger.CLUSTERS),
        ("ab", "a", Mode.SPREAD, "PolicyChanged ClusterJoined LabelsChanged", None),
    ],
)
def test_what_a_change_of_the_decision_is(
    before: str, after: str, mode: Mode, triggers: str, change: RescheduleTrigger | None
) -> None:
    changes = PlanChanges()
    observe(changes, {KEY: policy(*before, mode=mode, triggers=triggers)}, NODES)
    now = {KEY: policy(*after, mode=mode, triggers=triggers)}
    assert observe(changes, now, NODES) == ({KEY: change} if change else {})
    assert observe(changes, now, NODES) == {}


def test_a_decided_cluster_that_gets_its_target_counts_as_a_change() -> None:
    changes, of = PlanChanges(), {KEY: policy("a", "b", triggers="DecisionChanged")}
    observe(changes, of, NODES[:1])
    assert observe(changes, of, NODES[:2]) == {KEY: RescheduleTrigger.DECISION}
    assert observe(changes, of, NODES[:1]) == {}


def test_a_decision_that_cannot_be_read_changes_nothing() -> None:
    changes = PlanChanges()
    known = {KEY: policy("a", triggers=ALL)}
    unknown = {
        KEY: Policy(
            "placementpolicy/web",
            "default",
            None,
            Mode.FILL,
            reschedule=frozenset(RescheduleTrigger),
            decision=ClusterDecision(WEB, problem="?", is_known=False),
        )
    }
    observe(changes, unknown, NODES)
    assert observe(changes, known, NODES) == {}, "an agent has begun"
    assert observe(changes, unknown, NODES) == {}
    assert observe(changes, known, NODES) == {}
    other = {KEY: policy("b", triggers=ALL)}
    observe(changes, unknown, NODES)
    assert observe(changes, other, NODES) == {KEY: RescheduleTrigger.DECISION}
