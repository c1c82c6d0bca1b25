"""What is asked of a workload holds until it is met, one after the other."""

from __future__ import annotations

from tests.unit.pods.policies import entry, spread
from vnode.placement.moves.demands import PlanChange, WorkloadDemands, WorkloadRebalance
from vnode.planning.move_policy import Failback, FailbackMode, IntOrPercent, RescheduleTrigger
from vnode.planning.move_reasons import REBALANCE, RESCHEDULE, MoveReason
from vnode.planning.move_state import Decision
from vnode.planning.policy import Policy

NEVER = Failback(FailbackMode.NEVER, max_concurrent=IntOrPercent(3))
POLICY = spread(entry("a"), failback=NEVER, reschedule=frozenset({RescheduleTrigger.POLICY}))
NEEDS_NO_MOVE = Decision()
WAITS = Decision(left=2, why="no room in a")


def reasons(demands: WorkloadDemands, policy: Policy = POLICY) -> list[MoveReason]:
    return [wanted.reason for wanted in demands.wanted(policy)]


def limits(demands: WorkloadDemands) -> list[IntOrPercent]:
    return [wanted.limit for wanted in demands.wanted(POLICY)]


def test_two_changes_of_a_plan_ask_once_until_the_workload_is_at_it() -> None:
    demands = WorkloadDemands()
    demands.add(PlanChange())
    demands.add(PlanChange())
    (wanted,) = demands.wanted(POLICY)
    first = wanted.demand
    assert wanted.reason is RESCHEDULE
    assert first is not None
    first.report(WAITS, 0)
    first.report(NEEDS_NO_MOVE, 1)
    assert reasons(demands) == [RESCHEDULE]
    first.report(NEEDS_NO_MOVE, 0)
    assert reasons(demands) == []
    demands.add(PlanChange())
    assert reasons(demands) == [RESCHEDULE]


def test_a_policy_that_reschedules_no_longer_ends_what_its_changes_asked() -> None:
    demands = WorkloadDemands()
    demands.add(PlanChange())
    demands.add(WorkloadRebalance())
    demands.tidy(spread(entry("a"), failback=NEVER))
    assert reasons(demands) == [REBALANCE]


def test_rebalances_take_their_turns_each_with_its_own_limit() -> None:
    demands, first, second = WorkloadDemands(), WorkloadRebalance(), WorkloadRebalance()
    first.limit, second.limit = IntOrPercent(1), IntOrPercent(2)
    demands.add(first)
    demands.add(second)
    assert limits(demands) == [first.limit]
    first.report(NEEDS_NO_MOVE, 0)
    assert limits(demands) == [second.limit]
    second.limit = None
    assert limits(demands) == [NEVER.max_concurrent]
    demands.remove(second)
    assert reasons(demands) == []


def test_a_rebalance_knows_what_became_of_its_workload() -> None:
    news: list[int] = []
    demands = WorkloadDemands()
    rebalance = WorkloadRebalance(changed=lambda: news.append(1))
    demands.add(rebalance)
    rebalance.report(WAITS, 0, "a budget")
    assert (rebalance.left, rebalance.why, rebalance.is_met) == (2, "a budget", False)
    rebalance.count_eviction(1)
    assert (rebalance.moved, rebalance.under_way) == (1, 1)
    demands.end()
    assert (rebalance.left, rebalance.why, rebalance.is_met) == (0, "", True)
    assert len(news) == 3
    demands.end()
    assert len(news) == 3
