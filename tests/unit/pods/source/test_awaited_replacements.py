"""A pod that vnode moves runs on until the one that replaces it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.pods.bound_pods import RUNNING, World
from tests.unit.pods.policies import spread
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.scheduling.placement.failover import Failover, Purge

pytestmark = pytest.mark.looptime

WHY = "moved by placementpolicy/web (failback): 2 of 2 run in c2"
READY = [{"type": "Ready", "status": "True"}]


def owned(kind: str = "ReplicaSet", api: str = "apps/v1") -> dict[str, Any]:
    owner = {"apiVersion": api, "kind": kind, "name": "web", "uid": "owner", "controller": True}
    return {"ownerReferences": [owner]}


@pytest.fixture
async def world(clock: Clock) -> World:
    return World(clock, policy=spread())


@asynccontextmanager
async def moving(world: World, **metadata: Any) -> AsyncIterator[None]:
    """Run two pods, one of which is deleted, to be moved."""
    for name in ("web", "other"):
        pod = world.add(name, metadata=metadata or owned(), status=RUNNING)
        world.target.add(pod, **RUNNING)

    async with world.running():
        world.controller.replacements.open()
        world.controller.replacements.await_replacement(world.pod() or {}, WHY)
        await world.delete()
        await asyncio.sleep(1)
        yield


def replace(world: World, name: str = "new") -> None:
    """Make a pod, as the owner does, which waits for a place."""
    world.add(name, node="", metadata=owned())


def start(world: World, name: str = "new") -> None:
    world.change(lambda pod: pod["status"].update(conditions=READY), name)


def runs_on(world: World, name: str = "web") -> bool:
    """Tell whether nobody has asked the delegate to end."""
    return not objects.is_terminating(world.target.chaperon(name) or {})


async def test_a_moved_pod_ends_as_soon_as_its_replacement_is_ready(world: World) -> None:
    async with moving(world):
        replace(world)
        await asyncio.sleep(300)
        assert runs_on(world)
        start(world)
        await asyncio.sleep(0.1)
        assert not runs_on(world)


async def test_it_says_why_it_runs_on_and_how_to_end_it(world: World) -> None:
    async with moving(world):
        replace(world)
        await asyncio.sleep(1)
        condition = objects.condition(world.pod() or {}, keys.AWAITS_REPLACEMENT) or {}
        assert condition["reason"] == "AwaitsReplacement"
        assert condition["message"] == (
            f"{WHY}; runs on until a pod that replaces it is ready, until 2026-01-01T00:10:01Z at "
            "most; kubectl delete pod --now ends it"
        )
        assert world.event_messages("AwaitsReplacement") == [condition["message"]]
        world.target.report(conditions=READY, podIP="10.0.0.1")
        await asyncio.sleep(1)
        assert world.status()["podIP"] == "10.0.0.1"
        assert objects.condition(world.pod() or {}, keys.AWAITS_REPLACEMENT)
        await world.delete(grace=1)
        await asyncio.sleep(1)
        assert not runs_on(world)


async def test_a_pod_that_others_delete_ends_at_once(world: World) -> None:
    async with moving(world):
        replace(world)
        await world.delete("other")
        await asyncio.sleep(1)
        assert not runs_on(world, "other")
        assert runs_on(world)


@pytest.mark.parametrize(
    "metadata", [owned("StatefulSet"), owned("Job", "batch/v1"), {"labels": {"app": "web"}}]
)
async def test_a_pod_whose_owner_wants_its_end_first_does_not_wait(
    world: World, metadata: dict[str, Any]
) -> None:
    async with moving(world, **metadata):
        assert not runs_on(world)


async def test_a_pod_that_nobody_replaces_ends_after_a_minute(world: World) -> None:
    async with moving(world):
        await asyncio.sleep(55)
        assert runs_on(world)
        await asyncio.sleep(5)
        assert not runs_on(world)
        assert world.event_messages("ReplacementLate") == []


async def test_it_waits_no_longer_than_the_policy_says(world: World) -> None:
    world.policies.policy = spread(failover=Failover(grace=40))
    async with moving(world):
        replace(world)
        await asyncio.sleep(35)
        assert runs_on(world)
        await asyncio.sleep(5)
        assert not runs_on(world)
        assert world.event_messages("ReplacementLate")


async def test_with_immediate_it_does_not_wait(world: World) -> None:
    world.policies.policy = spread(failover=Failover(purge=Purge.IMMEDIATE))
    async with moving(world):
        assert not runs_on(world)
        assert world.event_messages("AwaitsReplacement") == []


async def test_without_its_policy_it_waits_no_more(world: World) -> None:
    async with moving(world):
        replace(world)
        await asyncio.sleep(10)
        world.policies.policy = None
        for changed in world.policies.listeners:
            changed()

        await asyncio.sleep(1)
        assert not runs_on(world)


async def test_a_delegate_that_is_not_ready_is_not_worth_waiting(world: World) -> None:
    async with moving(world):
        replace(world)
        await asyncio.sleep(10)
        world.target.report(conditions=[{"type": "Ready", "status": "False"}])
        await asyncio.sleep(1)
        assert not runs_on(world)


async def test_each_of_two_waits_for_a_replacement_of_its_own(world: World) -> None:
    async with moving(world):
        replace(world)
        await asyncio.sleep(1)
        world.controller.replacements.await_replacement(world.pod("other") or {}, WHY)
        await world.delete("other")
        await asyncio.sleep(1)
        start(world)
        await asyncio.sleep(1)
        assert (runs_on(world), runs_on(world, "other")) == (False, True)
        world.target.remove()
        await asyncio.sleep(1)
        assert world.pod() is None
        replace(world, "newer")
        await asyncio.sleep(1)
        assert runs_on(world, "other")
        start(world, "newer")
        await asyncio.sleep(1)
        assert not runs_on(world, "other")


# --- another leader


async def test_the_next_leader_has_it_wait_and_no_longer(world: World, clock: Clock) -> None:
    async with moving(world):
        replace(world)
        await asyncio.sleep(100)

    successor = World(clock, policy=spread())
    for name in ("web", "other", "new"):
        pod = world.source.find(kinds.PODS, name, "shop")
        assert pod is not None
        successor.source.add(kinds.PODS, pod)
        if name != "new":
            successor.target.add(pod, **RUNNING)

    async with successor.running():
        await asyncio.sleep(5)
        assert runs_on(successor)  # its policies are not known yet
        successor.controller.replacements.open()
        await asyncio.sleep(480)
        assert runs_on(successor)
        await asyncio.sleep(20)
        assert not runs_on(successor)


async def test_a_mark_of_a_user_has_a_pod_wait_for_nothing(world: World) -> None:
    """Its owner makes another one anyway, and until that is ready it may run, but no longer."""
    forged = {"type": keys.AWAITS_REPLACEMENT, "status": "True"}
    status = {**RUNNING, "conditions": [*RUNNING["conditions"], forged]}
    world.policies.policy = None
    pod = world.add(metadata=owned(), status=status)
    world.target.add(pod, **RUNNING)
    async with world.running():
        world.controller.replacements.open()
        await world.delete()
        await asyncio.sleep(1)
        assert not runs_on(world)


# --- a target that was lost


async def test_a_pod_of_a_lost_target_is_marked_before_that_answers_again(world: World) -> None:
    for name in ("web", "other"):
        world.target.add(world.add(name, metadata=owned(), status=RUNNING), **RUNNING)

    async with world.running():
        world.controller.replacements.open()
        world.target.set_answering(False)
        world.controller.replacements.await_replacement(world.pod() or {}, WHY)
        await world.delete()
        await world.delete("other")
        await asyncio.sleep(1)
        replace(world)
        await asyncio.sleep(100)
        assert objects.condition(world.pod() or {}, keys.AWAITS_REPLACEMENT)
        assert world.event_messages("AwaitsReplacement") == []  # nobody knows whether it still runs
        world.target.set_answering(True)
        await asyncio.sleep(10)
        assert (runs_on(world), runs_on(world, "other")) == (True, False)
        assert len(world.event_messages("AwaitsReplacement")) == 1
        start(world)
        await asyncio.sleep(1)
        assert not runs_on(world)


@pytest.mark.parametrize("purge", [Purge.GRACEFUL, Purge.IMMEDIATE])
async def test_a_replaced_pod_ends_when_its_target_is_back(world: World, purge: Purge) -> None:
    world.policies.policy = spread(failover=Failover(purge=purge))
    world.target.add(world.add(metadata=owned(), status=RUNNING), **RUNNING)
    async with world.running():
        world.controller.replacements.open()
        world.target.set_answering(False)
        world.controller.replacements.await_replacement(world.pod() or {}, WHY)
        await world.delete()
        replace(world)
        start(world)
        await asyncio.sleep(300)
        assert runs_on(world)
        world.target.set_answering(True)
        await asyncio.sleep(0.1)
        assert not runs_on(world)
