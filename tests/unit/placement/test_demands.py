"""What is asked of a workload holds until it is met, one after the other."""

from __future__ import annotations

from tests.unit.pods.policies import entry, spread
from vnode.placement.moves.demands import PlanChange, WorkloadDemands, WorkloadRebalance
from vnode.planning.move_policy import Failback, FailbackMode, IntOrPercent, RescheduleTrigger
from vnode.planning.move_reasons import REBALANCE, RESCHEDULE
from vnode.planning.move_state import Decision

NEVER = Failback(FailbackMode.NEVER, max_concurrent=IntOrPercent(3))
POLICY = spread(entry("a"), failback=NEVER, reschedule=frozenset({RescheduleTrigger.POLICY}))
NEEDS_NO_MOVE = Decision()
WAITS = Decision(left=2, why="no room in a")


def test_two_changes_of_a_plan_ask_once_until_the_workload_is_at_it() -> None:
    demands = WorkloadDemands()
    demands.add(PlanChange())
    demands.add(PlanChange())
    assert demands.reasons(POLICY) == [RESCHEDULE]
    first = demands.first(RESCHEDULE)
    assert first is not None
    first.report(WAITS, 0)
    first.report(NEEDS_NO_MOVE, 1)
    assert demands.reasons(POLICY) == [RESCHEDULE]
    first.report(NEEDS_NO_MOVE, 0)
    assert demands.reasons(POLICY) == []
    demands.add(PlanChange())
    assert demands.reasons(POLICY) == [RESCHEDULE]


def test_a_policy_that_reschedules_no_longer_ends_what_its_changes_asked() -> None:
    demands = WorkloadDemands()
    demands.add(PlanChange())
    demands.add(WorkloadRebalance())
    demands.tidy(spread(entry("a"), failback=NEVER))
    assert demands.reasons(POLICY) == [REBALANCE]


def test_rebalances_take_their_turns_each_with_its_own_limit() -> None:
    demands, first, second = WorkloadDemands(), WorkloadRebalance(), WorkloadRebalance()
    first.limit, second.limit = IntOrPercent(1), IntOrPercent(2)
    demands.add(first)
    demands.add(second)
    assert demands.limit(REBALANCE, POLICY) == first.limit
    first.report(NEEDS_NO_MOVE, 0)
    assert demands.limit(REBALANCE, POLICY) == second.limit
    demands.remove(second)
    assert demands.limit(REBALANCE, POLICY) == NEVER.max_concurrent
    assert demands.reasons(POLICY) == []


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
