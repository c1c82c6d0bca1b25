"""A pod that may wait in a hundred clusters at once, of thousands of replicas, holds nobody up."""

from __future__ import annotations

import time
from typing import Final

import pytest

from tests.unit.planning.test_workload_counts import pod
from vnode.planning import choosing
from vnode.planning.policy import Overflow
from vnode.planning.seats import Share
from vnode.planning.workload import Workload

COUNT: Final = 5_000
SHARES: Final = tuple(Share(f"node-{number:03}", weight=number + 1) for number in range(100))
ALLOWED: Final = 0.4
"""Seconds of the processor on a busy machine; with all seats in order each time, four times as
many on a quiet one."""


@pytest.mark.parametrize("bound", [0, COUNT])
@pytest.mark.parametrize("after", [0.0, 30.0])
def test_a_pod_for_which_all_clusters_are_opened_is_chosen_for_quickly(
    bound: int, after: float
) -> None:
    workload = Workload("w")
    for number in range(COUNT):
        workload.put(pod(f"p{number}", node=SHARES[number % 100].node if number < bound else ""))

    workload.put(pod("late", since=0))
    overflow = Overflow(after=after, max_candidates=100)
    begun = time.thread_time()
    choice = choosing.choose(workload, workload.members["late"], SHARES, overflow, 1e6)
    assert time.thread_time() - begun < ALLOWED
    assert len(choice.nodes()) == 100
