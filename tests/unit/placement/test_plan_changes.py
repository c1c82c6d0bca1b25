"""Which changes make a policy plan something else, and which of them it wants to hear of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.placement.observed_changes import observe
from vnode.api import selectors
from vnode.planning.move_policy import Drain, RescheduleTrigger
from vnode.planning.plan_changes import PlanChanges
from vnode.planning.policy import Clusters, Mode, PlacementTarget, Policy
from vnode.planning.policy_node import PlannedNode

EU = PlacementTarget(Clusters(selectors.parse("region=eu")), weight=1)
POLICY = Policy(
    "placementpolicy/web", "default", None, targets=(EU,), reschedule=frozenset(RescheduleTrigger)
)
A, B = (PlannedNode(name, {"region": "eu"}) for name in "ab")


def seen(policy: Policy = POLICY, *nodes: PlannedNode) -> PlanChanges:
    changes = PlanChanges()
    assert observe(changes, {"default/web": policy}, nodes or (A,)) == {}
    return changes


@pytest.mark.parametrize(
    ("policy", "nodes", "change"),
    [
        (POLICY, (A, B), None),
        (replace(POLICY, priority=1), (A, B), RescheduleTrigger.POLICY),
        (replace(POLICY, drains=(Drain("a"),)), (A, B), None),
        (POLICY, (A, B, PlannedNode("c", {"region": "eu"})), RescheduleTrigger.CLUSTERS),
        (POLICY, (A, B, PlannedNode("c", {"region": "us"})), None),
        (POLICY, (A, PlannedNode("b", {"region": "us"})), RescheduleTrigger.LABELS),
        (POLICY, (A, PlannedNode("b", {"region": "eu", "more": ""})), None),
        (POLICY, (A,), None),
    ],
)
def test_what_has_changed(
    policy: Policy, nodes: tuple[PlannedNode, ...], change: RescheduleTrigger | None
) -> None:
    changes = seen(POLICY, A, B)
    expected = {} if change is None else {"default/web": change}
    assert observe(changes, {"default/web": policy}, nodes) == expected
    assert observe(changes, {"default/web": policy}, nodes) == {}


@pytest.mark.parametrize("wanted", list(RescheduleTrigger))
def test_only_what_a_policy_asks_for_counts(wanted: RescheduleTrigger) -> None:
    policy = replace(POLICY, reschedule=frozenset({wanted}))
    joined = (A, B, PlannedNode("c", {"region": "eu"}))
    changed = observe(seen(policy, A, B), {"default/web": policy}, joined)
    assert bool(changed) is (wanted is RescheduleTrigger.CLUSTERS)
    another = replace(policy, priority=1)
    changed = observe(seen(policy, A, B), {"default/web": another}, (A, B))
    assert bool(changed) is (wanted is RescheduleTrigger.POLICY)


def test_a_policy_that_begins_has_changed() -> None:
    assert observe(seen(), {"default/new": POLICY}, (A,)) == {
        "default/new": RescheduleTrigger.POLICY
    }
    silent = replace(POLICY, reschedule=frozenset())
    assert observe(seen(silent), {"default/new": silent}, (A, B)) == {}


def test_a_cluster_joins_when_it_is_ready_and_not_each_time_that_it_comes_back() -> None:
    changes = seen(POLICY, A)
    late = replace(B, takes_pods=False)
    policies = {"default/web": POLICY}
    assert observe(changes, policies, (A, late)) == {}
    assert observe(changes, policies, (A, B)) == {"default/web": RescheduleTrigger.CLUSTERS}
    assert observe(changes, policies, (A, late)) == {}
    assert observe(changes, policies, (A, B)) == {}


def test_a_cluster_that_joins_changes_no_other_of_a_policy_that_fills() -> None:
    fill = replace(POLICY, mode=Mode.FILL, targets=())
    joined = (PlannedNode("0", {}), A, B)
    everything = observe(seen(fill, A, B), {"default/web": fill}, joined)
    assert everything == {"default/web": RescheduleTrigger.CLUSTERS}
    labels = replace(fill, reschedule=frozenset({RescheduleTrigger.LABELS}))
    assert observe(seen(labels, A, B), {"default/web": labels}, joined) == {}
