"""Rollouts of Deployments end by the plan, whatever their strategy and whatever comes between."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.planning.rollouts import (
    TRIES,
    DrivenWorkload,
    RolledDeployment,
    Strategy,
)
from tests.unit.planning.test_choosing import share_lists
from vnode.planning.seats import Share, plan

FILL = (Share("c1", tier=2, minimum=2, maximum=6), Share("c2", tier=1, minimum=2))
THREE = (*FILL, Share("c3", tier=0, minimum=2))
SPREAD = (Share("c1", 40, minimum=2), Share("c2", 40, minimum=2), Share("c3", 20, minimum=2))

strategies = st.builds(
    Strategy, st.sampled_from((0, 10, 25, 50, 100)), st.sampled_from((0, 10, 25, 50, 100))
) | st.just(Strategy(recreate=True))


def deployed(shares: tuple[Share, ...], replicas: int, strategy: Strategy) -> RolledDeployment:
    """Return a Deployment that is complete."""
    made = RolledDeployment(DrivenWorkload(shares), replicas, strategy)
    made.finish()
    return made


@pytest.mark.parametrize(
    ("shares", "replicas", "strategy"),
    [
        (THREE, 10, Strategy()),
        (SPREAD, 10, Strategy()),
        (SPREAD, 10, Strategy(10, 0)),
        (SPREAD, 6, Strategy(10, 0)),
        (SPREAD, 20, Strategy()),
        (FILL, 8, Strategy()),
        ((Share("c1", tier=1, maximum=8), Share("c2")), 8, Strategy()),
        ((Share("c1", tier=1, maximum=8), Share("c2")), 8, Strategy(100, 0)),
        ((Share("c1", tier=1, maximum=12), Share("c3")), 12, Strategy()),
    ],
)
def test_ten_rollouts_in_a_row_leave_the_plan_as_it_was(
    shares: tuple[Share, ...], replicas: int, strategy: Strategy
) -> None:
    web = deployed(shares, replicas, strategy)
    for _ in range(10):
        web.roll_out()
        web.finish()
        assert web.workload.on_nodes() == plan(replicas, shares, "w").planned


def test_a_rollout_goes_on_where_all_maximums_are_reached() -> None:
    web = deployed((Share("c1", maximum=5), Share("c2", maximum=5)), 10, Strategy(10, 0))
    web.roll_out()
    web.finish()
    assert web.workload.on_nodes() == {"c1": 5, "c2": 5}


@given(share_lists(), st.integers(1, 40), strategies, st.integers(), st.integers(1, 4))
def test_after_every_rollout_the_counts_are_those_of_the_plan(
    shares: list[Share], replicas: int, strategy: Strategy, seed: int, rollouts: int
) -> None:
    """Whichever pods become ready first, and whenever costs are written."""
    replicas = min(replicas, len(plan_seats(shares, replicas)))
    web = RolledDeployment(
        DrivenWorkload(tuple(shares)), replicas, strategy, dice=random.Random(seed)
    )
    web.finish()
    for _ in range(rollouts):
        web.roll_out()
        web.finish()
        assert web.workload.on_nodes() == plan(replicas, shares, "w").planned


@given(share_lists(), st.integers(1, 40), strategies, st.lists(st.integers(0, 6), max_size=12))
def test_rollouts_that_are_cut_short_scaled_or_undone_end_by_the_plan(
    shares: list[Share], replicas: int, strategy: Strategy, acts: list[int]
) -> None:
    most = len(plan_seats(shares, 60))
    web = deployed(tuple(shares), min(replicas, most), strategy)
    for number, act in enumerate(acts):
        if act == 0:
            web.roll_out()
        elif act == 1:
            web.roll_out(revision=web.current // 2)
        elif act == 2:
            web.scale(min(most, replicas + number))
        elif act == 3:
            web.scale(min(most, max(1, replicas - 3 * number)))
        elif act == 4:
            web.is_paused = not web.is_paused
        else:
            web.step()

        web.settle()
        check_each_revision(web, shares)

    web.is_paused = False
    web.finish()
    assert web.workload.on_nodes() == plan(web.replicas, shares, "w").planned


@given(share_lists(), st.lists(st.integers(1, 8), min_size=2, max_size=3), strategies, st.data())
def test_deployments_that_are_one_workload_end_by_the_plan_rolled_out_one_by_one_or_at_once(
    shares: list[Share], sizes: list[int], strategy: Strategy, data: st.DataObject
) -> None:
    workload = DrivenWorkload(tuple(shares))
    most = len(plan_seats(shares, 60))
    sizes = [size for size in sizes if size <= most // len(sizes)]
    several = [
        RolledDeployment(workload, size, strategy, f"d{number}")
        for number, size in enumerate(sizes)
    ]
    for each in several:
        each.finish()

    for _ in range(3):
        chosen = [each for each in several if data.draw(st.booleans())]
        for each in chosen:
            each.roll_out()

        finish_together(chosen)
        workload.write_costs()
        assert workload.on_nodes() == workload.plan()


def finish_together(deployments: list[RolledDeployment]) -> None:
    """Take steps of several in turn until all are complete."""
    for _ in range(TRIES):
        complete = [each.step() for each in deployments]
        if all(complete):
            return

    raise AssertionError("the rollouts hang")


def check_each_revision(web: RolledDeployment, shares: list[Share]) -> None:
    """Check that the pods of each revision are by the plan of their own number."""
    for revision, count in web.wanted.items():
        there = dict(Counter(pod.node for pod in web.pods(revision)))
        assert there == plan(count, shares, "w").planned


def plan_seats(shares: list[Share], count: int) -> list[str]:
    """Return the clusters of all pods that the plan has a place for, of so many."""
    return [n for n, number in plan(count, shares, "w").planned.items() for _ in range(number)]
