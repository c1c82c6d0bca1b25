"""Federations in which the other side runs Admiralty 0.17, played by its wire contract."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests import kit
from tests.e2e import admiralty_target
from tests.e2e.test_refusals import create_with_young_class
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.insight.target_clients import connected
from vnode.kube.client import Client

PREFIX: Final = admiralty_target.PREFIX
HELD: Final = "vnode.dev/delegate"
PEER: Final = "admiralty-source"
"""The name of a source that runs Admiralty."""


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:6]}"


def agent(target: Object) -> str:
    """Return what a Target says that its cluster runs."""
    return str((objects.condition(target, "Agent") or {}).get("reason"))


async def until_agent(source: Client, reason: str) -> None:
    await kit.until_one(source, kinds.TARGETS, "c3", "default", lambda t: agent(t) == reason)


async def run(source: Client, name: str, **spec: object) -> Object:
    """Return a pod on c3, running."""
    constraints = f"nodeSelector: {{{PREFIX}target-name: c3}}"
    notes = {PREFIX + "elect": "", PREFIX + "proxy-pod-scheduling-constraints": constraints}
    await create_with_young_class(source, kit.pod(name, annotations=notes, **spec))
    return await kit.until_running(source, name)


def of(pod: Object) -> str:
    return f"{PREFIX}parent-uid={objects.uid(pod)}"


async def delegates(client: Client, pod: Object) -> list[Object]:
    return await client.list(kinds.PODS, "default", label_selector=of(pod))


async def end(source: Client, target: Client, pod: Object) -> None:
    """Delete a proxy pod, which goes once its delegate is gone."""
    name = objects.name(pod)
    await source.delete(kinds.PODS, name, "default")
    await kit.until_gone(source, kinds.PODS, "default", field_selector=f"metadata.name={name}")
    assert await delegates(target, pod) == []
    await kit.until_gone(target, kinds.POD_CHAPERONS, "default", label_selector=of(pod))


async def test_a_target_goes_to_admiralty_and_back_under_its_pods(
    fleet: Fleet, source: Client, c3: Client
) -> None:
    await until_agent(source, "Vnode")
    kept, ended = await run(source, fresh("kept")), await run(source, fresh("ended"))
    async with admiralty_target.instead_of_vnode(fleet, "c3", c3):
        await admiralty_target.forget_vnode(c3)
        await until_agent(source, "NotVnode")
        [held] = await c3.list(kinds.POD_CHAPERONS, "default", label_selector=of(ended))
        assert objects.finalizers(held) == [HELD]
        await end(source, c3, ended)
        new = await run(source, fresh("new"))
        [made] = await c3.list(kinds.POD_CHAPERONS, "default", label_selector=of(new))
        assert objects.finalizers(made) == []
        logs = kit.run([*fleet.kubectl_command("c1"), "logs", objects.name(new)])
        assert logs
        await end(source, c3, new)
        later = await run(source, fresh("later"))

    await until_agent(source, "Vnode")
    for pod in (kept, later):
        now = await source.get(kinds.PODS, objects.name(pod), "default")
        assert objects.uid(now) == objects.uid(pod)
        assert kit.phase(now) == "Running"
        await end(source, c3, pod)


async def test_a_target_goes_back_as_the_page_says_and_is_not_judged_by_an_old_report(
    fleet: Fleet, source: Client, c3: Client
) -> None:
    """Classes made after the way back count, and nothing of a running pod waits for vnode."""
    await until_agent(source, "Vnode")
    runtime, priority = fresh("late"), fresh("late")
    kept, ended = await run(source, fresh("kept")), await run(source, fresh("ended"))
    async with admiralty_target.instead_of_vnode(fleet, "c3", c3):
        webhook = await c3.get(kinds.MUTATING_WEBHOOKS, "vnode")
        done = vnode("migrate", "--back", "--kubeconfig", fleet.kubeconfig("c3"))
        assert done.code == 0, done.out + done.err
        await until_agent(source, "NotVnode")
        for pod in (kept, ended):
            [held] = await c3.list(kinds.POD_CHAPERONS, "default", label_selector=of(pod))
            assert objects.finalizers(held) == []

        await end(source, c3, ended)
        for client in (source, c3):
            await client.create(kinds.RUNTIME_CLASSES, of_class(runtime, handler="runc"))
            await client.create(kinds.PRIORITY_CLASSES, of_class(priority, value=5000))

        try:
            new = await run(
                source, fresh("new"), runtimeClassName=runtime, priorityClassName=priority
            )
            [delegate] = await delegates(c3, new)
            spec = objects.spec(delegate)
            assert (spec["runtimeClassName"], spec["priority"]) == (runtime, 5000)
            await end(source, c3, new)
        finally:
            for client in (source, c3):
                await client.delete(kinds.RUNTIME_CLASSES, runtime)
                await client.delete(kinds.PRIORITY_CLASSES, priority)

            again = {"name": "vnode", "labels": objects.labels(webhook)}
            await c3.create(kinds.MUTATING_WEBHOOKS, {**webhook, "metadata": again})

    await until_agent(source, "Vnode")
    await end(source, c3, kept)


def of_class(name: str, **fields: object) -> Object:
    return {"metadata": {"name": name}, **fields}


async def test_a_pod_whose_delegate_is_deleted_in_a_target_with_admiralty_is_deleted(
    fleet: Fleet, source: Client, c3: Client
) -> None:
    async with admiralty_target.instead_of_vnode(fleet, "c3", c3):
        await admiralty_target.forget_vnode(c3)
        await until_agent(source, "NotVnode")
        name = fresh("lost")
        pod = await run(source, name)
        [delegate] = await delegates(c3, pod)
        await c3.delete(kinds.PODS, objects.name(delegate), "default")
        await kit.until_gone(source, kinds.PODS, "default", field_selector=f"metadata.name={name}")

    await until_agent(source, "Vnode")


@pytest.fixture
async def sender(source: Client) -> AsyncIterator[Client]:
    """Yield a client of c2 for a source that runs Admiralty, with c1's credentials there."""
    target = await source.get(kinds.TARGETS, "c2", "default")
    async with connected(source, target) as client:
        yield client
        selector = f"{PREFIX}parent-cluster-name={PEER}"
        for left in await client.list(kinds.POD_CHAPERONS, "default", label_selector=selector):
            await client.discard(kinds.POD_CHAPERONS, left)


async def send(sender: Client, name: str, parent: str) -> Object:
    """Return a candidate, as Admiralty's proxy scheduler creates it."""
    labels = {
        PREFIX + "app": name,
        PREFIX + "parent-uid": parent,
        PREFIX + "parent-cluster-name": PEER,
    }
    annotations = {PREFIX + "parent-namespace": "default", PREFIX + "parent-name": name}
    metadata = {"generateName": f"{name}-", "labels": labels, "annotations": annotations}
    spec = {**kit.pod(name)["spec"], "schedulerName": "admiralty-candidate"}
    body = {
        "apiVersion": PREFIX + "v1alpha1",
        "kind": "PodChaperon",
        "metadata": metadata,
        "spec": spec,
    }
    made = await sender.create(kinds.POD_CHAPERONS, body, "default")
    return await kit.until_one(
        sender,
        kinds.POD_CHAPERONS,
        objects.name(made),
        "default",
        lambda c: PREFIX + "is-reserved" in objects.annotations(c),
    )


async def allow(sender: Client, candidate: Object) -> Object:
    """Return what Admiralty does with the candidate that it has chosen; the chaperon, running."""
    name = objects.name(candidate)
    body = {"metadata": {"annotations": {PREFIX + "is-allowed": "true"}}}
    await sender.patch(kinds.POD_CHAPERONS, name, body, "default")
    return await kit.until_one(
        sender, kinds.POD_CHAPERONS, name, "default", lambda c: kit.phase(c) == "Running"
    )


async def test_a_source_with_admiralty_runs_reads_and_ends_pods_in_a_target_with_vnode(
    sender: Client, c2: Client
) -> None:
    parent = str(uuid.uuid4())
    chosen = await allow(sender, await send(sender, fresh("sent"), parent))
    selector = f"{PREFIX}parent-uid={parent}"
    [delegate] = await sender.list(kinds.PODS, "default", label_selector=selector)
    assert objects.name(delegate) == objects.name(chosen)
    assert objects.status(chosen)["podIP"] == objects.status(delegate)["podIP"]
    logs = kinds.PODS.path("default", objects.name(delegate), "log")
    assert await sender.text(logs)
    await sender.delete(kinds.POD_CHAPERONS, objects.name(chosen), "default")
    await kit.until_gone(c2, kinds.PODS, "default", label_selector=selector)


async def test_a_candidate_that_admiralty_has_not_chosen_goes_and_gives_its_place_back(
    sender: Client, c2: Client
) -> None:
    parent = str(uuid.uuid4())
    losing = await send(sender, fresh("losing"), parent)
    selector = f"{PREFIX}parent-uid={parent}"
    [candidate] = await c2.list(kinds.PODS, "default", label_selector=selector)
    assert not objects.node_name(candidate)
    await sender.delete(kinds.POD_CHAPERONS, objects.name(losing), "default")
    await kit.until_gone(c2, kinds.PODS, "default", label_selector=selector)


async def test_a_delegate_that_is_deleted_in_a_target_with_vnode_is_reported_to_admiralty(
    sender: Client, c2: Client
) -> None:
    chosen = await allow(sender, await send(sender, fresh("gone"), str(uuid.uuid4())))
    name = objects.name(chosen)
    await c2.delete(kinds.PODS, name, "default")
    await kit.until_one(
        sender,
        kinds.POD_CHAPERONS,
        name,
        "default",
        lambda c: PREFIX + "pod-missing-since" in objects.annotations(c),
    )
    await sender.delete(kinds.POD_CHAPERONS, name, "default")
    await kit.until_gone(c2, kinds.PODS, "default", field_selector=f"metadata.name={name}")


async def test_a_pod_that_admiralty_sent_without_a_name_of_its_cluster_is_taken_over(
    fleet: Fleet, source: Client, c3: Client
) -> None:
    pod = await run(source, fresh("nameless"))
    fleet.run("stop", "c1", "agent")
    try:
        [chaperon] = await c3.list(kinds.POD_CHAPERONS, "default", label_selector=of(pod))
        ours = [key for key in objects.annotations(chaperon) if key.startswith("vnode.dev/")]
        as_admiraltys = {
            "labels": {PREFIX + "parent-cluster-name": ""},
            "annotations": dict.fromkeys(ours),
            "finalizers": [],
        }
        body = {"metadata": as_admiraltys}
        await c3.patch(kinds.POD_CHAPERONS, objects.name(chaperon), body, "default")
        done = vnode("migrate", "--kubeconfig", fleet.kubeconfig("c1"))  # an agent may be faster
        assert done.code == 0, done.err
        assert "target default/c3: took over 1 PodChaperon" in done.out
    finally:
        fleet.run("start", "c1", "agent")

    [delegate] = await delegates(c3, pod)
    annotated = {"metadata": {"annotations": {"example.com/note": "from c3"}}}
    await c3.patch(kinds.PODS, objects.name(delegate), annotated, "default")
    name = objects.name(pod)
    now = await kit.until_one(
        source, kinds.PODS, name, "default", lambda p: "example.com/note" in objects.annotations(p)
    )
    assert objects.uid(now) == objects.uid(pod)
    await end(source, c3, pod)
