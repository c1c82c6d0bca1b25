"""A budget is broken by an eviction that was granted when too few pods were available."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults import evicting
from tests.faults.plan import Kind, Workload

WEB = Workload("web", Kind.DEPLOYMENT, 4, budget=True)


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        (4, 3, 0),  # as many as the budget lets go
        (4, 2, 0),  # another ended for a reason of its own
        (3, 2, 1),
        (3, 3, 0),  # one became available before the eviction
    ],
)
def test_an_eviction_leaves_what_the_budget_wants(before: int, after: int, wrong: int) -> None:
    assert len(list(evicting.overdrawn(WEB, before, after))) == wrong


def pod(phase: str = "Running", ready: str = "True", **metadata: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": metadata, "status": {"phase": phase, "conditions": conditions}}


def test_those_are_available_that_are_ready_and_stay() -> None:
    others = [pod("Pending"), pod(ready="False"), pod(deletionTimestamp="now"), {"metadata": {}}]
    assert evicting.available([pod(), *others, pod()]) == 2
