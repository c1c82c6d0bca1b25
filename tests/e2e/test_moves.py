"""Pods that run are moved on a real fleet: back where they were planned, out of a drained cluster,
and to a new plan.

Disruption budgets of the source are kept all the time: a real API server refuses evictions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import kit
from tests.e2e import test_placement as placement
from tests.e2e.test_placement import Policy, Rooms, deploy, until_there
from vnode.api import kinds
from vnode.api.kinds import Kind
from vnode.kube.client import Client

policy, rooms = placement.policy, placement.rooms
BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")


@pytest.fixture
async def budget(source: Client) -> AsyncIterator[None]:
    """Allows one pod of the workload to be disrupted."""
    body = {
        "apiVersion": BUDGETS.api_version,
        "kind": BUDGETS.kind,
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await source.create(BUDGETS, body, "default")
    yield
    await source.delete(BUDGETS, "web", "default")


async def amend(source: Client, **spec: Any) -> None:
    await source.patch(kinds.PLACEMENT_POLICIES, "web", {"spec": spec}, "default")


@pytest.mark.usefixtures("budget")
async def test_pods_go_back_are_drained_and_rebalanced(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(2, 50)
    await policy(
        {"cluster": "c2", "weight": 2},
        {"cluster": "c3", "weight": 1},
        overflow={"afterUnschedulableFor": "5s"},
        failback={"mode": "Probe", "stabilization": "5s", "maxConcurrent": "50%"},
    )
    await deploy(source, 6)
    await until_there(source, c2=2, c3=4)

    await rooms(4, 50)
    await until_there(source, seconds=90, c2=4, c3=2)
    await kit.until_event(
        source,
        "default",
        "reason=Moved,involvedObject.kind=PlacementPolicy",
        "(failback): 4 of 6 run in c3, planned 2; c2 has room",
    )

    await amend(source, drain=[{"cluster": "c2", "maxReplicas": 1}])
    await until_there(source, seconds=90, c2=1, c3=5)

    await amend(source, drain=None)
    body = {
        "apiVersion": kinds.REBALANCES.api_version,
        "kind": kinds.REBALANCES.kind,
        "metadata": {"name": "now"},
        "spec": {
            "workloads": [{"kind": "Deployment", "name": "web"}],
            "maxConcurrent": 2,
            "ttlSecondsAfterFinished": 5,
        },
    }
    await source.create(kinds.REBALANCES, body, "default")
    await kit.until_one(
        source,
        kinds.REBALANCES,
        "now",
        "default",
        lambda obj: kit.has_condition(obj, "Complete"),
        seconds=90,
    )
    await until_there(source, c2=4, c3=2)
    await kit.until_gone(source, kinds.REBALANCES, "default")
