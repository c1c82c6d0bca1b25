"""Budgets of a source say which of its pods should not end; who has thousands holds up nobody."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from vnode.api.clock import Clock, SystemClock
from vnode.api.objects import Object
from vnode.pods.preemption import MOST_PROXIES
from vnode.pods.source.broken_budgets import MOST_BUDGETS, DisruptionBudgets

WEB: Final = {"matchLabels": {"app": "web"}}


def pod(app: str) -> Object:
    return {"metadata": {"namespace": "n", "labels": {"app": app}}}


def budget(allowed: int, selector: Any, namespace: str = "n", number: int = 0) -> Object:
    metadata = {"namespace": namespace, "uid": f"{allowed}{selector}{number}"}
    status = {"disruptionsAllowed": allowed}
    return {"metadata": metadata, "spec": {"selector": selector}, "status": status}


@pytest.mark.parametrize(
    ("budgets", "broken"),
    [
        ([], 0),
        ([budget(0, WEB)], 2),
        ([budget(1, WEB)], 1),
        ([budget(2, {})], 1),
        ([budget(0, {}, "other"), budget(0, None)], 0),
        ([budget(0, {"matchLabels": {"-": "-"}})], 0),
    ],
)
async def test_a_budget_covers_as_many_as_it_allows(
    budgets: list[Object], broken: int, clock: Clock
) -> None:
    known = DisruptionBudgets()
    await known.read(budgets, clock)
    pods = [pod("web"), pod("web"), pod("db")]
    assert await known.broken_by(pods, clock) == broken
    assert await known.broken_by(pods, clock) == broken  # it has remembered nothing of them


async def test_thousands_of_budgets_are_read_once_and_compared_in_slices() -> None:
    """With 5,000, all in one step took 1.5 s."""
    known, clock = DisruptionBudgets(), SystemClock()
    budgets = [budget(1, WEB, number=number) for number in range(10 * MOST_BUDGETS)]
    reading, comparing = known.read(budgets, clock), None
    assert _longest_step(reading) < 0.05
    comparing = known.broken_by([pod("web")] * MOST_PROXIES, clock)
    began = time.thread_time()
    assert _longest_step(comparing) < 0.05
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {f"a{number}": "" for number in range(60_000)}},
        {"matchExpressions": [{"key": f"a{n}", "operator": "DoesNotExist"} for n in range(45_000)]},
    ],
    ids=["labels", "expressions"],
)
def test_a_budget_that_takes_long_to_compare_does_not_count(selector: Any) -> None:
    """One took 0.6 s to read and to compare with a pod."""
    known, clock = DisruptionBudgets(), SystemClock()
    assert _longest_step(known.read([budget(0, selector), budget(0, WEB)], clock)) < 0.05
    assert _longest_step(known.broken_by([pod("web")], clock)) < 0.05
    assert sum(map(len, known._by_namespace.values())) == 1


def _longest_step(work: Any) -> float:
    """Go on with a coroutine until it is over; return the longest CPU time between two awaits."""
    longest = 0.0
    while True:
        began = time.thread_time()
        try:
            work.send(None)
        except StopIteration:
            return max(longest, time.thread_time() - began)

        longest = max(longest, time.thread_time() - began)
