"""Releases whose agents are held to named namespaces: what they do there, and may not elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

from tests import kit
from tests.chart import releases
from tests.chart.helm import CHART
from tests.chart.kubelet import Kubelet, kubelet
from tests.chart.releases import AGENT, SCHEDULER
from tests.fleets import SOURCE, TARGET, vnode
from tests.kit import Fleet
from tests.rights import may
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

NAMED = ("team-a", "team-b")
OTHER = "team-c"
ACCOUNT = "system:serviceaccount:vnode:vnode"


async def test_agents_work_in_named_namespaces_and_see_nothing_of_others(
    fleet: Fleet, tmp_path: Path
) -> None:
    async with (
        kubelet(fleet, SOURCE, tmp_path / "pods") as c1,
        kubelet(fleet, TARGET, tmp_path / "pods") as c2,
    ):
        await install(c1, c2)
        await a_pod_runs_with_its_secret(c1, c2)
        await nothing_else_may_be_read(c1.client)
        await nothing_else_may_be_read(c2.client)
        await a_pod_of_another_namespace_is_an_ordinary_one(c1)
        for machine in (c1, c2):
            assert refusals(machine) == []

        await a_namespace_that_is_made_again_is_served_again(c1)
        await a_namespace_with_a_pod_in_a_target_can_be_deleted(c1.client, c2.client)
        for machine in (c1, c2):  # a namespace that goes lets nobody in: told once of each kind
            told = refusals(machine)
            assert len(told) == len(set(told))
            assert all("team-a" in line or "team-b" in line for line in told)


def refusals(machine: Kubelet) -> list[str]:
    """Return the lines of an agent's log that say that it was refused, without their time."""
    log = (machine.folder / machine.cluster / f"{AGENT}.log").read_text()
    lines = [line for line in log.splitlines() if "forbidden" in line.lower()]
    return [line.partition('"message"')[2] or line for line in lines]


async def install(c1: Kubelet, c2: Kubelet) -> None:
    """Install the chart in both clusters, held to the named namespaces, and connect one of them."""
    for machine in (c1, c2):
        for name in (*NAMED, OTHER):
            await kit.new_namespace(machine.client, name)

        wanted = {**releases.values(machine), "namespaces": list(NAMED)}
        releases.run(machine, "install", "vnode", CHART, "--create-namespace", values=wanted)

    await releases.play(c1, AGENT)
    await releases.play(c2, AGENT, SCHEDULER)
    files = [c1.fleet.kubeconfig(name) for name in (SOURCE, TARGET)]
    clusters = ("--source", files[0], "--target", files[1])
    done = vnode("connect", *clusters, "--namespace", "team-a", "--name", TARGET)
    assert done.code == 0, done.err
    refused = vnode("connect", *clusters, "--namespace", OTHER, "--name", TARGET)
    assert "is held to team-a, team-b" in refused.err


async def a_pod_runs_with_its_secret(c1: Kubelet, c2: Kubelet) -> None:
    """Have a pod run in the target with a Secret that follows it, and read its log."""
    await c1.client.create(kinds.SECRETS, secret("first"), "team-a")
    pod = kit.pod("web", annotations={keys.ELECT: ""})
    pod["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "password"}}]
    await c1.client.create(kinds.PODS, pod, "team-a")
    await kit.until_one(
        c1.client, kinds.PODS, "web", "team-a", lambda found: kit.phase(found) == "Running"
    )
    await kit.until_one(c2.client, kinds.SECRETS, "password", "team-a", holds("first"))
    await c1.client.patch(kinds.SECRETS, "password", secret("second"), "team-a")
    await kit.until_one(c2.client, kinds.SECRETS, "password", "team-a", holds("second"))
    assert await c1.client.text(kinds.PODS.path("team-a", "web", "log")) is not None


def secret(value: str) -> Object:
    """Return the Secret with that password."""
    data = {"password": base64.b64encode(value.encode()).decode()}
    return {"metadata": {"name": "password"}, "data": data}


def holds(value: str) -> Callable[[Object], bool]:
    """Return a predicate that tells whether a Secret has that password."""
    return lambda found: found["data"] == secret(value)["data"]


async def nothing_else_may_be_read(client: Client) -> None:
    """Ask the API server what the agent's account may do, in another namespace and in its own."""
    for verb in ("get", "list", "watch"):
        for resource in ("/pods", "/secrets", "/configmaps", "/services"):
            assert await may(client, ACCOUNT, f"{verb} {resource} team-a")
            assert not await may(client, ACCOUNT, f"{verb} {resource} {OTHER}")
            assert not await may(client, ACCOUNT, f"{verb} {resource}")

    for question in ("create /pods", "delete /pods", "create /pods/binding", "patch /services"):
        assert await may(client, ACCOUNT, f"{question} team-a")
        assert not await may(client, ACCOUNT, f"{question} {OTHER}")
        assert not await may(client, ACCOUNT, f"{question} vnode")

    assert await may(client, ACCOUNT, "get /secrets vnode")
    bind = "bind rbac.authorization.k8s.io/clusterroles {} admiralty-source"
    assert await may(client, ACCOUNT, bind.format("team-a"))
    assert not await may(client, ACCOUNT, bind.format("-"))


async def a_pod_of_another_namespace_is_an_ordinary_one(c1: Kubelet) -> None:
    """Create an elected pod where the agent may see nothing; it runs here, as it was written."""
    pod = kit.pod("web", annotations={keys.ELECT: ""})
    created = await c1.client.create(kinds.PODS, pod, OTHER)
    assert objects.spec(created)["schedulerName"] == "default-scheduler"
    assert not objects.finalizers(created)
    running = await kit.until_one(
        c1.client, kinds.PODS, "web", OTHER, lambda found: kit.phase(found) == "Running"
    )
    assert not objects.node_name(running).startswith("admiralty-")
    told = vnode("doctor", "--kubeconfig", c1.fleet.kubeconfig(SOURCE)).out
    assert f"{OTHER} has the label multicluster-scheduler=enabled" in told


async def a_namespace_that_is_made_again_is_served_again(c1: Kubelet) -> None:
    """Delete a named namespace and make it again; once its rights are there, it is served."""
    await c1.client.delete(kinds.NAMESPACES, "team-b")
    by_name = "metadata.name=team-b"
    await kit.until_gone(c1.client, kinds.NAMESPACES, field_selector=by_name)
    await c1.roll_out()  # who starts in between waits for the other namespaces only
    await kit.new_namespace(c1.client, "team-b")
    wanted = {**releases.values(c1), "namespaces": list(NAMED)}
    releases.run(c1, "upgrade", "vnode", CHART, values=wanted)
    reference = {"name": "nowhere"}
    target = {"metadata": {"name": "later"}, "spec": {"kubeconfigSecret": reference}}
    await c1.client.create(kinds.TARGETS, target, "team-b")
    await kit.until_one(
        c1.client,
        kinds.TARGETS,
        "later",
        "team-b",
        lambda found: objects.condition(found, "Ready") is not None,
    )


async def a_namespace_with_a_pod_in_a_target_can_be_deleted(source: Client, target: Client) -> None:
    """Delete the namespace in the source, then in the target: nothing waits for rights."""
    for client in (source, target):
        for kind in (kinds.ROLES, kinds.ROLE_BINDINGS):
            kept = await client.get(kind, "vnode", "team-a")
            assert objects.finalizers(kept) == [keys.WORK_LEFT]

    by_name = "metadata.name=team-a"
    await source.delete(kinds.NAMESPACES, "team-a")
    await kit.until_gone(source, kinds.NAMESPACES, field_selector=by_name)
    await kit.until_gone(target, kinds.POD_CHAPERONS, "team-a")
    await target.delete(kinds.NAMESPACES, "team-a")
    await kit.until_gone(target, kinds.NAMESPACES, field_selector=by_name)
