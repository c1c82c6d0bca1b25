"""A budget is broken by an eviction that was granted when too few pods were available."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults import evicting
from tests.faults.plan import WantedWorkload, WorkloadKind

WEB = WantedWorkload("web", WorkloadKind.DEPLOYMENT, 4, budget=True)


def pod(name: str, phase: str = "Running", ready: str = "True", **metadata: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {
        "metadata": {"uid": name, **metadata},
        "status": {"phase": phase, "conditions": conditions},
    }


def pods(available: int) -> list[dict[str, Any]]:
    """Return four pods, of which only the first `available` are available."""
    return [pod(str(number), ready=str(number < available)) for number in range(WEB.replicas)]


def counted(healthy: int) -> dict[str, Any]:
    """Return a PodDisruptionBudget whose controller has last counted so many healthy pods."""
    return {"status": {"currentHealthy": healthy}}


def others(available: int) -> list[dict[str, Any]]:
    """Return the pods but the first, which was evicted; so many are available."""
    return pods(available + 1)[1:]


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        (4, 3, 0),  # as many as the budget lets go
        (4, 2, 0),  # another ended for a reason of its own
        (3, 2, 1),
        (3, 3, 0),  # one became available before the eviction
        (3, 1, 0),  # one ceased to be: its budget may not have known
    ],
)
def test_an_eviction_leaves_what_the_budget_wants(before: int, after: int, wrong: int) -> None:
    found = evicting.overdrawn(WEB, counted(before), pod("0"), pods(before), others(after))
    assert len(list(found)) == wrong


@pytest.mark.parametrize(
    "now", [pod("0", "Pending"), pod("0", ready="False"), pod("0", deletionTimestamp="now")]
)
def test_a_pod_that_was_not_available_any_more_is_nothing_to_a_budget(now: dict[str, Any]) -> None:
    before = [now, *others(2)]
    assert not list(evicting.overdrawn(WEB, counted(2), pod("0"), before, others(2)))


def test_what_a_budget_does_not_know_yet_is_not_held_against_an_eviction() -> None:
    assert list(evicting.overdrawn(WEB, counted(2), pod("0"), pods(2), others(1)))
    assert not list(evicting.overdrawn(WEB, counted(4), pod("0"), pods(2), others(1)))
