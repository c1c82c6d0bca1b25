"""Pods go where somebody else decides, on a real fleet, and move only where that is asked for.

The controller of Open Cluster Management is played: its decisions are written as it writes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import decisions, kit, rights
from tests.decisions import OCM, decide, of_placement
from tests.e2e.places import Policy, Rooms, deploy, policy, rooms, until_there
from tests.e2e.test_placement import scale
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.kube.client import Client

__all__ = ["policy", "rooms"]

FOLLOWS: dict[str, Any] = {"clusters": {"decisionRef": decisions.reference(OCM, "web")}}
ROLE = "vnode-decisions"


@pytest.fixture
async def decided(source: Client) -> AsyncIterator[None]:
    """Install the CRD of decisions, and let the agent read decisions, until the test ends."""
    await rights.bind(source, ROLE, ROLE)
    await decisions.install(source, OCM)
    try:
        yield
    finally:
        await decisions.uninstall(source, OCM)
        await source.delete(kinds.CLUSTER_ROLE_BINDINGS, ROLE)


async def until_decided(source: Client, status: str, reason: str) -> str:
    """Wait for the policy's condition, and return its message."""

    def is_so(obj: dict[str, Any]) -> bool:
        found = objects.condition(obj, "Decided") or {}
        return (found.get("status"), found.get("reason")) == (status, reason)

    found = await kit.until_one(source, kinds.PLACEMENT_POLICIES, "web", "default", is_so)
    return str((objects.condition(found, "Decided") or {})["message"])


@pytest.mark.usefixtures("decided")
async def test_new_pods_follow_a_decision_and_running_ones_stay(
    fleet: Fleet, source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    await decide(source, of_placement("web", "c2"))
    await policy(**FOLLOWS)
    await until_decided(source, "True", "Decided")
    await deploy(source, 2)
    await until_there(source, c2=2)
    await decide(source, of_placement("web", "c3"))
    await scale(source, 4)
    await until_there(source, c2=2, c3=2)

    await asyncio.to_thread(fleet.wait, "c1", "placementpolicy/web", "Decided", "Ready")
    await decide(source, of_placement("web"))
    message = await until_decided(source, "False", "NoClusters")
    await asyncio.to_thread(fleet.wait, "c1", "placementpolicy/web", "Decided=False", "Ready=False")
    assert message == "pods of the policy stay pending: placement/default/web selects no clusters"
    await scale(source, 5)
    pods = await until_there(source, c2=2, c3=2, waiting=1)
    waiting = next(objects.name(pod) for pod in pods.values() if not objects.node_name(pod))
    publisher = "placementpolicy/web: placement/default/web selects no clusters"

    def waits(pod: dict[str, Any]) -> bool:
        condition = objects.condition(pod, "PodScheduled") or {}
        return publisher in str(condition.get("message"))

    await kit.until_one(source, kinds.PODS, waiting, "default", waits)
    done = vnode("explain", "pod", waiting, "-n", "default", "--kubeconfig", fleet.kubeconfig("c1"))
    assert publisher in " ".join(done.out.split())
    done = vnode("get", "policies", "-o", "wide", "--kubeconfig", fleet.kubeconfig("c1"))
    assert message in done.out

    await decide(source, of_placement("web", "c2", "elsewhere"))
    assert "elsewhere" in await until_decided(source, "False", "UnknownClusters")
    await until_there(source, c2=3, c3=2)


@pytest.mark.usefixtures("decided")
async def test_running_pods_move_where_the_policy_reschedules(
    source: Client, policy: Policy, rooms: Rooms
) -> None:
    await rooms(50, 50)
    await decide(source, of_placement("web", "c2"))
    await policy(**FOLLOWS, reschedule={"when": ["DecisionChanged"]})
    await deploy(source, 3)
    await until_there(source, c2=3)
    await decide(source, of_placement("web", "c3"))
    await until_there(source, c3=3)
    await kit.until_event(
        source, "default", "reason=Moved,involvedObject.kind=PlacementPolicy", "(reschedule)"
    )
