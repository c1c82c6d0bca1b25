"""A pod that vnode moves runs on until the one that replaces it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.pods.bound_pods import RUNNING, BoundPodsEnvironment, new_pod
from tests.unit.pods.policies import spread
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.planning.failover import Failover, Purge
from vnode.planning.policy import Policy

pytestmark = pytest.mark.looptime

WHY = "moved by placementpolicy/web (failback): 2 of 2 run in c2"
READY = [{"type": "Ready", "status": "True"}]


def owned(kind: str = "ReplicaSet", api: str = "apps/v1") -> dict[str, Any]:
    owner = {"apiVersion": api, "kind": kind, "name": "web", "uid": "owner", "controller": True}
    return {"ownerReferences": [owner]}


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock, policy=spread())


@asynccontextmanager
async def moving(env: BoundPodsEnvironment, **metadata: Any) -> AsyncIterator[None]:
    """Run two pods, one of which is deleted, to be moved."""
    for name in ("web", "other"):
        pod = env.add(name, metadata=metadata or owned(), status=RUNNING)
        env.target.add(pod, **RUNNING)

    async with env.running():
        env.controller.replacements.open()
        env.controller.replacements.await_replacement(env.pod() or {}, WHY)
        await env.delete()
        await asyncio.sleep(1)
        yield


def replace(env: BoundPodsEnvironment, name: str = "new") -> None:
    """Make a pod, as the owner does, which waits for a place."""
    env.add(name, node="", metadata=owned())


def start(env: BoundPodsEnvironment, name: str = "new") -> None:
    env.change(lambda pod: pod["status"].update(conditions=READY), name)


def runs_on(env: BoundPodsEnvironment, name: str = "web") -> bool:
    """Tell whether nobody has asked the delegate to end."""
    return not objects.is_terminating(env.target.chaperon(name) or {})


async def test_a_moved_pod_ends_as_soon_as_its_replacement_is_ready(
    env: BoundPodsEnvironment,
) -> None:
    async with moving(env):
        replace(env)
        await asyncio.sleep(300)
        assert runs_on(env)
        start(env)
        await asyncio.sleep(0.1)
        assert not runs_on(env)


async def test_a_ready_pod_of_another_namespace_replaces_nothing(
    env: BoundPodsEnvironment,
) -> None:
    async with moving(env):  # its owner has yet to make another one
        forged = new_pod("forged", "", metadata=owned())
        forged["metadata"]["namespace"] = "hostile"
        env.source.add(kinds.PODS, {**forged, "status": {"conditions": READY}})
        await asyncio.sleep(1)
        assert runs_on(env)


async def test_a_policy_has_only_pods_of_its_namespace_looked_at(
    env: BoundPodsEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with moving(env):
        woken = list[str]()
        monkeypatch.setattr(env.controller.replacements, "_wake", woken.append)
        env.policies.change(spread(), "hostile")
        assert not woken
        for namespace in ("shop", ""):
            env.policies.change(spread(), namespace)

        assert woken == ["shop/web", "shop/web"]


async def test_it_says_why_it_runs_on_and_how_to_end_it(env: BoundPodsEnvironment) -> None:
    async with moving(env):
        replace(env)
        await asyncio.sleep(1)
        condition = objects.condition(env.pod() or {}, keys.AWAITS_REPLACEMENT) or {}
        assert condition["reason"] == "AwaitsReplacement"
        assert condition["message"] == (
            f"{WHY}; runs on until a pod that replaces it is ready, until 2026-01-01T00:10:01Z at "
            "most; kubectl delete pod --now ends it"
        )
        assert env.event_messages("AwaitsReplacement") == [condition["message"]]
        env.target.report(conditions=READY, podIP="10.0.0.1")
        await asyncio.sleep(1)
        assert env.status()["podIP"] == "10.0.0.1"
        assert objects.condition(env.pod() or {}, keys.AWAITS_REPLACEMENT)
        await env.delete(grace=1)
        await asyncio.sleep(1)
        assert not runs_on(env)


async def test_a_pod_that_others_delete_ends_at_once(env: BoundPodsEnvironment) -> None:
    async with moving(env):
        replace(env)
        await env.delete("other")
        await asyncio.sleep(1)
        assert not runs_on(env, "other")
        assert runs_on(env)


@pytest.mark.parametrize(
    "metadata", [owned("StatefulSet"), owned("Job", "batch/v1"), {"labels": {"app": "web"}}]
)
async def test_a_pod_whose_owner_wants_its_end_first_does_not_wait(
    env: BoundPodsEnvironment, metadata: dict[str, Any]
) -> None:
    async with moving(env, **metadata):
        assert not runs_on(env)


async def test_a_pod_that_nobody_replaces_ends_after_a_minute(env: BoundPodsEnvironment) -> None:
    async with moving(env):
        await asyncio.sleep(55)
        assert runs_on(env)
        await asyncio.sleep(5)
        assert not runs_on(env)
        assert env.event_messages("ReplacementLate") == []


async def test_it_waits_no_longer_than_the_policy_says(env: BoundPodsEnvironment) -> None:
    env.policies.policy = spread(failover=Failover(grace=40))
    async with moving(env):
        replace(env)
        await asyncio.sleep(35)
        assert runs_on(env)
        await asyncio.sleep(5)
        assert not runs_on(env)
        assert env.event_messages("ReplacementLate")


async def test_with_immediate_it_does_not_wait(env: BoundPodsEnvironment) -> None:
    env.policies.policy = spread(failover=Failover(purge=Purge.IMMEDIATE))
    async with moving(env):
        assert not runs_on(env)
        assert env.event_messages("AwaitsReplacement") == []


@pytest.mark.parametrize("policy", [None, spread(failover=Failover(purge=Purge.IMMEDIATE))])
async def test_it_keeps_the_grace_that_it_began_with_whatever_becomes_of_its_policy(
    env: BoundPodsEnvironment, clock: Clock, policy: Policy | None
) -> None:
    env.policies.policy = spread(failover=Failover(grace=200))
    async with moving(env):
        replace(env)
        await asyncio.sleep(10)
        env.policies.change(policy)

        await asyncio.sleep(100)
        assert runs_on(env)

    successor = _successor(env, clock, policy)
    async with successor.running():
        successor.controller.replacements.open()
        await asyncio.sleep(80)
        assert runs_on(successor)
        await asyncio.sleep(20)
        assert not runs_on(successor)


async def test_a_delegate_that_is_not_ready_is_not_worth_waiting(env: BoundPodsEnvironment) -> None:
    async with moving(env):
        replace(env)
        await asyncio.sleep(10)
        env.target.report(conditions=[{"type": "Ready", "status": "False"}])
        await asyncio.sleep(1)
        assert not runs_on(env)


async def test_each_of_two_waits_for_a_replacement_of_its_own(env: BoundPodsEnvironment) -> None:
    async with moving(env):
        replace(env)
        await asyncio.sleep(1)
        env.controller.replacements.await_replacement(env.pod("other") or {}, WHY)
        await env.delete("other")
        await asyncio.sleep(1)
        start(env)
        await asyncio.sleep(1)
        assert (runs_on(env), runs_on(env, "other")) == (False, True)
        env.target.remove()
        await asyncio.sleep(1)
        assert env.pod() is None
        replace(env, "newer")
        await asyncio.sleep(1)
        assert runs_on(env, "other")
        start(env, "newer")
        await asyncio.sleep(1)
        assert not runs_on(env, "other")


# --- another leader


def _successor(
    env: BoundPodsEnvironment, clock: Clock, policy: Policy | None
) -> BoundPodsEnvironment:
    """Return another leader, which finds the pods as they are."""
    successor = BoundPodsEnvironment(clock, policy=policy)
    for name in ("web", "other", "new"):
        pod = env.source.find(kinds.PODS, name, "shop")
        assert pod is not None
        successor.source.add(kinds.PODS, pod)
        if name != "new":
            successor.target.add(pod, **RUNNING)

    return successor


async def test_the_next_leader_has_it_wait_and_no_longer(
    env: BoundPodsEnvironment, clock: Clock
) -> None:
    async with moving(env):
        replace(env)
        await asyncio.sleep(100)

    successor = _successor(env, clock, spread())
    async with successor.running():
        await asyncio.sleep(5)
        assert runs_on(successor)  # its policies are not known yet
        successor.controller.replacements.open()
        await asyncio.sleep(480)
        assert runs_on(successor)
        await asyncio.sleep(20)
        assert not runs_on(successor)


async def test_a_mark_of_a_user_has_a_pod_wait_for_nothing(env: BoundPodsEnvironment) -> None:
    """Its owner makes another one anyway, and until that is ready it may run, but no longer."""
    forged = {"type": keys.AWAITS_REPLACEMENT, "status": "True"}
    status = {**RUNNING, "conditions": [*RUNNING["conditions"], forged]}
    env.policies.policy = None
    pod = env.add(metadata=owned(), status=status)
    env.target.add(pod, **RUNNING)
    async with env.running():
        env.controller.replacements.open()
        await env.delete()
        await asyncio.sleep(1)
        assert not runs_on(env)


# --- a target that was lost


async def test_a_pod_of_a_lost_target_is_marked_before_that_answers_again(
    env: BoundPodsEnvironment,
) -> None:
    for name in ("web", "other"):
        env.target.add(env.add(name, metadata=owned(), status=RUNNING), **RUNNING)

    async with env.running():
        env.controller.replacements.open()
        env.target.set_answering(False)
        env.controller.replacements.await_replacement(env.pod() or {}, WHY)
        await env.delete()
        await env.delete("other")
        await asyncio.sleep(1)
        replace(env)
        await asyncio.sleep(100)
        assert objects.condition(env.pod() or {}, keys.AWAITS_REPLACEMENT)
        assert env.event_messages("AwaitsReplacement") == []  # nobody knows whether it still runs
        env.target.set_answering(True)
        await asyncio.sleep(10)
        assert (runs_on(env), runs_on(env, "other")) == (True, False)
        assert len(env.event_messages("AwaitsReplacement")) == 1
        start(env)
        await asyncio.sleep(1)
        assert not runs_on(env)


@pytest.mark.parametrize("purge", [Purge.GRACEFUL, Purge.IMMEDIATE])
async def test_a_replaced_pod_ends_when_its_target_is_back(
    env: BoundPodsEnvironment, purge: Purge
) -> None:
    env.policies.policy = spread(failover=Failover(purge=purge))
    env.target.add(env.add(metadata=owned(), status=RUNNING), **RUNNING)
    async with env.running():
        env.controller.replacements.open()
        env.target.set_answering(False)
        env.controller.replacements.await_replacement(env.pod() or {}, WHY)
        await env.delete()
        replace(env)
        start(env)
        await asyncio.sleep(300)
        assert runs_on(env)
        env.target.set_answering(True)
        await asyncio.sleep(0.1)
        assert not runs_on(env)


async def test_nothing_stays_of_a_pod_that_others_have_bound(env: BoundPodsEnvironment) -> None:
    """A tenant may give it the annotation by which pods of lost clusters are moved."""
    async with env.running():
        env.add(spec={"schedulerName": "default-scheduler"}, metadata={"finalizers": []})
        await asyncio.sleep(1)
        pod = env.controller.bound.get(objects.key(env.pod() or {}))
        assert pod is not None
        env.controller.replacements.await_replacement(pod, WHY)
        away = objects.namespace(pod)
        await env.source.client("user").delete(kinds.PODS, "web", away, grace=0)
        await asyncio.sleep(1)
        assert env.pod() is None
        assert env.controller.replacements._begun.of(pod) is None
