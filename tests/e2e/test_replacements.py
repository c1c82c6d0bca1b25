"""A pod that a policy moves runs on until the one that replaces it is ready, whoever leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests import kit
from tests.e2e.places import C3, Policy, amend, policy, until_there
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["policy"]


@asynccontextmanager
async def nothing_starts(fleet: Fleet, cluster: str) -> AsyncIterator[None]:
    """Have pods wait for their kubelets until the end of the block."""
    await asyncio.to_thread(fleet.run, "stop", cluster, "kwok")
    try:
        yield
    finally:
        await asyncio.to_thread(fleet.run, "start", cluster, "kwok")


async def delegates(target: Client) -> list[Object]:
    found = await target.list(kinds.PODS, "default", label_selector=f"{keys.PREFIX}app=web")
    return [pod for pod in found if not objects.is_terminating(pod)]


async def annotate_delegate(source: Client, c3: Client, delegate: Object, proxy: str) -> None:
    """Write what the pod is to hand on, as its containers do, and see that it is known."""
    body = {"metadata": {"annotations": {"example.com/checkpoint": "7"}}}
    await c3.patch(kinds.PODS, objects.name(delegate), body, "default")
    await kit.until_one(
        source,
        kinds.PODS,
        proxy,
        "default",
        lambda pod: "example.com/checkpoint" in objects.annotations(pod),
    )


async def run_another(source: Client) -> None:
    """See that the agent is at work, by a pod that runs in c3."""
    pod = kit.pod_in("c3", "another")
    await source.create(kinds.PODS, pod, "default")
    await kit.until_running(source, "another")


def is_waiting(pod: Object) -> bool:
    return objects.is_terminating(pod) and kit.has_condition(pod, keys.AWAITS_REPLACEMENT)


async def test_a_moved_pod_runs_on_until_its_replacement_is_ready(
    fleet: Fleet, source: Client, c2: Client, c3: Client, policy: Policy
) -> None:
    kept = {"annotation": "example.com/at", "fromAnnotation": "example.com/checkpoint"}
    await policy({"cluster": "c2"}, {"cluster": "c3"}, failover={"preserve": [kept]})
    await source.create(kinds.DEPLOYMENTS, kit.deployment("web", 2, kit.pod("web")), "default")
    before = await until_there(source, c2=1, c3=1)
    (old,) = [pod for pod in before.values() if objects.node_name(pod) == C3]
    name = objects.name(old)
    (delegate,) = await delegates(c3)
    await annotate_delegate(source, c3, delegate, name)
    async with nothing_starts(fleet, "c2"):
        await amend(source, drain=[{"cluster": "c3"}])
        waiting = await kit.until_one(source, kinds.PODS, name, "default", is_waiting)
        message = (objects.condition(waiting, keys.AWAITS_REPLACEMENT) or {})["message"]
        assert message.startswith("moved by placementpolicy/web (drain)")
        await until_there(source, c2=1, waiting=1)
        where = ("-n", "default", "--kubeconfig", fleet.kubeconfig("c1"))
        explained = await asyncio.to_thread(vnode, "explain", "pod", name, *where)
        assert "runs on until a pod that replaces it is ready" in " ".join(explained.out.split())

        await asyncio.to_thread(fleet.run, "stop", "c1", "agent")
        await asyncio.to_thread(fleet.run, "start", "c1", "agent")
        await run_another(source)
        assert [objects.uid(pod) for pod in await delegates(c3)] == [objects.uid(delegate)]

    await until_there(source, c2=2)
    await kit.until_pods(source, "web", lambda pods: objects.key(old) not in pods)
    assert not await delegates(c3)
    handed = [objects.annotations(pod).get("example.com/at") for pod in await delegates(c2)]
    assert sorted(filter(None, handed)) == ["7"]
