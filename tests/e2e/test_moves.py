"""Pods that run are moved on a real fleet: back where they were planned, out of a drained cluster,
and to a new plan, which quotas bound.

Disruption budgets of the source are kept all the time: a real API server refuses evictions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e.places import (
    Policy,
    Rooms,
    amend,
    deploy,
    policy,
    rooms,
    until_there,
    until_told,
)
from tests.e2e.test_quotas import set_quota
from tests.kit import Fleet
from vnode.api import kinds
from vnode.api.kinds import Kind
from vnode.kube.client import Client

__all__ = ["policy", "rooms"]

BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")


@pytest.fixture
async def budget(source: Client) -> AsyncIterator[None]:
    """Allow one pod of the workload to be disrupted, by a budget that ends with the test."""
    body = {
        "apiVersion": BUDGETS.api_version,
        "kind": BUDGETS.kind,
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await source.create(BUDGETS, body, "default")
    yield
    await source.delete(BUDGETS, "web", "default")


@pytest.fixture
async def quotas(c3: Client) -> AsyncIterator[None]:
    """Delete the quotas of c3 when the test ends."""
    yield
    for quota in await c3.list(kinds.RESOURCE_QUOTAS, "default"):
        await c3.discard(kinds.RESOURCE_QUOTAS, quota)


@pytest.mark.usefixtures("budget")
async def test_pods_go_back_are_drained_and_rebalanced(
    fleet: Fleet, source: Client, policy: Policy, rooms: Rooms
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
    await until_there(source, c2=4, c3=2)
    await until_told(source, "Moved", "(failback): 4 of 6 run in c3, planned 2; c2 has room")

    await amend(source, drain=[{"cluster": "c2", "maxReplicas": 1}])
    await until_there(source, c2=1, c3=5)

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
    await asyncio.to_thread(fleet.wait, "c1", "rebalance/now", "Complete")
    await until_there(source, c2=4, c3=2)
    await kit.until_gone(source, kinds.REBALANCES, "default")


async def test_a_policy_that_reschedules_moves_pods_when_it_changes(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    heavy, light = {"cluster": "c2", "weight": 2}, {"cluster": "c3", "weight": 1}
    await policy(heavy, light, reschedule={"when": ["PolicyChanged"]})
    await deploy(source, 6)
    await until_there(source, c2=4, c3=2)
    await amend(source, targets=[{**heavy, "weight": 1}, {**light, "weight": 2}])
    await until_there(source, c2=2, c3=4)
    await until_told(source, "Moved", "(reschedule): 3 of 6 run in c2, planned 2; c3 has room")


@pytest.mark.usefixtures("quotas")
async def test_a_drain_fills_no_quota_and_tells_that_it_waits(
    source: Client, c3: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    await set_quota(c3, "few", {"pods": "3"})
    await policy({"cluster": "c2", "weight": 1}, {"cluster": "c3", "weight": 1})
    await deploy(source, 4)
    await until_there(source, c2=2, c3=2)
    await amend(source, drain=[{"cluster": "c2"}])
    await until_there(source, c2=1, c3=3)
    await until_told(source, "MoveWaits", "deployment/default/web: 1 pods wait to be moved (drain)")
    await until_there(source, c2=1, c3=3)
    await set_quota(c3, "few", {"pods": "9"})
    await until_there(source, c3=4)
