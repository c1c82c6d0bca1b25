"""What differs between the reasons to move pods."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.planning.test_workload_counts import pod
from tests.unit.pods.policies import entry, spread
from vnode.api import keys
from vnode.planning.move_policy import Drain, Failback, FailbackMode
from vnode.planning.move_reasons import DRAIN, FAILBACK, REASONS, REBALANCE, RESCHEDULE
from vnode.planning.policy import Mode
from vnode.planning.policy_node import PlannedNode
from vnode.planning.workload import Workload

NODES = [PlannedNode(name, {}) for name in ("a", "b")]
POLICY = spread(entry("a"), entry("b"))
SINGLE = replace(POLICY, mode=Mode.SINGLE)


def placed(**nodes: int) -> Workload:
    workload = Workload("w")
    for node, count in nodes.items():
        for number in range(count):
            workload.put(pod(f"{node}{number}", node=node))

    return workload


def test_users_know_them_by_these_words() -> None:
    assert [each.value for each in REASONS] == ["drain", "rebalance", "reschedule", "failback"]


def test_a_policy_drains_and_has_pods_go_back_by_itself_and_else_somebody_asks() -> None:
    drained = replace(POLICY, drains=(Drain("a"),))
    never = Failback(FailbackMode.NEVER)
    assert [each for each in REASONS if each.is_wanted(drained)] == [DRAIN, FAILBACK]
    assert [each for each in REASONS if each.is_wanted(replace(POLICY, failback=never))] == []
    assert [each for each in REASONS if each.is_wanted(SINGLE)] == []


def test_a_drain_moves_what_exceeds_it() -> None:
    for count, cap, moves in ((2, 1, True), (2, 2, False), (0, 0, False)):
        policy = replace(POLICY, drains=(Drain("a", cap),))
        assert DRAIN.may_move(placed(a=count, b=3), policy, NODES) is moves


def test_a_workload_that_is_kept_together_leaves_a_cluster_that_may_not_have_all_of_it() -> None:
    policy = replace(SINGLE, drains=(Drain("a", 3),))
    assert DRAIN.may_move(placed(a=3, b=1), policy, NODES)
    assert not DRAIN.may_move(placed(a=3), policy, NODES)
    assert not DRAIN.may_move(placed(b=4), policy, NODES)


def test_only_a_pod_that_overflowed_goes_back() -> None:
    workload = placed(a=1)
    assert REBALANCE.may_move(workload, POLICY, NODES)
    assert RESCHEDULE.may_move(workload, POLICY, NODES)
    assert not FAILBACK.may_move(workload, POLICY, NODES)
    overflowed = pod("b0", node="b")
    overflowed["metadata"]["annotations"] = {keys.OVERFLOWED_FROM: "a"}
    workload.put(overflowed)
    assert FAILBACK.may_move(workload, POLICY, NODES)


def test_changes_of_clusters_are_awaited_for_longer_where_pods_may_wait_for_days() -> None:
    policy = replace(POLICY, failback=Failback(stabilization=100.0))
    assert [each.settling(policy) for each in REASONS] == [1.0, 1.0, 1.0, 5.0]
