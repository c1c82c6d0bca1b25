"""The target's side of a pod against a real API server: what its chaperon tells as it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests import kit
from tests.integration.delegates import HOLD, release
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods.target import chaperon_controller
from vnode.pods.target.chaperon_controller import ChaperonController
from vnode.runtime.supervisor import supervise

VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)


@asynccontextmanager
async def controlled(client: Client) -> AsyncIterator[None]:
    """Run a chaperon controller; inside, chaperons have delegates, as where an agent leads."""
    known, delegates = chaperon_controller.informers(client)
    controller = ChaperonController(
        client, known, delegates, goes_on=lambda _chaperon: False, clock=SystemClock()
    )
    async with supervise() as tasks:
        for name, run in (("known", known), ("delegates", delegates), ("chaperons", controller)):
            tasks.start(run.run(), name)

        yield


async def sent(client: Client, namespace: str, name: str = "web-1", **spec: Any) -> Object:
    """Return a chaperon as vnode sends it, allowed."""
    pod = kit.pod(name, schedulerName="nobody", **spec)
    body = {
        "metadata": {
            "name": name,
            "labels": {keys.PARENT_UID: f"uid-of-{name}"},
            "annotations": {keys.IS_ALLOWED: "true"},
            "finalizers": [keys.DELEGATE_FINALIZER],
        },
        "spec": objects.spec(pod),
    }
    return await client.create(kinds.POD_CHAPERONS, body, namespace)


async def delegated(client: Client, namespace: str, name: str = "web-1") -> Object:
    """Return its delegate, which runs on a node without a kubelet, and is held by somebody else."""
    await kit.until_one(client, kinds.PODS, name, namespace, lambda _pod: True)
    hold = {"metadata": {"finalizers": [HOLD]}}
    await client.patch(kinds.PODS, name, hold, namespace)
    node = {"target": {"kind": "Node", "name": "no-kubelet"}}
    await client.create(
        kinds.PODS,
        {"metadata": {"name": name}, **node},
        namespace,
        name=name,
        subresource="binding",
    )
    return await set_status(client, namespace, name, phase="Running")


async def set_status(client: Client, namespace: str, name: str, **status: object) -> Object:
    """Return what a kubelet would say of the delegate."""
    body: Object = {"status": status}
    return await client.patch(kinds.PODS, name, body, namespace, subresource="status")


def reports(phase: str) -> Callable[[Object], bool]:
    """Tell whether the chaperon says that its delegate is in that phase."""
    return lambda chaperon: objects.status(chaperon).get("phase") == phase


async def until_chaperon(client: Client, namespace: str, holds: Callable[[Object], bool]) -> Object:
    return await kit.until_one(client, kinds.POD_CHAPERONS, "web-1", namespace, holds)


async def test_a_chaperon_that_ends_reports_until_its_delegate_is_gone(
    client: Client, pod_namespace: str
) -> None:
    async with controlled(client):
        chaperon = await sent(client, pod_namespace)
        pod = await delegated(client, pod_namespace)
        await until_chaperon(client, pod_namespace, reports("Running"))
        await client.discard(kinds.POD_CHAPERONS, chaperon)
        await kit.until_one(client, kinds.PODS, "web-1", pod_namespace, objects.is_terminating)
        await set_status(client, pod_namespace, "web-1", phase="Failed", reason="Ended")
        reported = await until_chaperon(client, pod_namespace, reports("Failed"))
        assert objects.status(reported)["reason"] == "Ended"
        assert keys.DELEGATE_DELETED in objects.annotations(reported)

        await release(client, pod)
        await kit.until_gone(client, kinds.POD_CHAPERONS, pod_namespace)


async def test_a_delegate_that_was_hidden_from_its_list_ends_with_its_chaperon(
    client: Client, pod_namespace: str
) -> None:
    async with controlled(client):
        chaperon = await sent(client, pod_namespace)
        pod = await delegated(client, pod_namespace)
        await until_chaperon(client, pod_namespace, reports("Running"))
        hide = {"metadata": {"labels": {keys.PARENT_UID: None}}}
        await client.patch(kinds.PODS, "web-1", hide, pod_namespace)
        shown = await kit.until_one(
            *(client, kinds.PODS, "web-1", pod_namespace),
            lambda found: objects.labels(found).get(keys.PARENT_UID) == "uid-of-web-1",
        )
        assert objects.uid(shown) == objects.uid(pod)
        known = await client.get(kinds.POD_CHAPERONS, "web-1", pod_namespace)
        assert keys.POD_MISSING_SINCE not in objects.annotations(known)

        await client.discard(kinds.POD_CHAPERONS, chaperon)
        await client.patch(kinds.PODS, "web-1", hide, pod_namespace)
        await kit.until_one(client, kinds.PODS, "web-1", pod_namespace, objects.is_terminating)
        await release(client, pod)
        await kit.until_gone(client, kinds.POD_CHAPERONS, pod_namespace)


async def test_a_delegate_ends_in_the_time_that_its_source_gives_it(
    client: Client, pod_namespace: str
) -> None:
    def ends_in(seconds: int) -> Callable[[Object], bool]:
        return lambda pod: objects.metadata(pod).get("deletionGracePeriodSeconds") == seconds

    async with controlled(client):
        chaperon = await sent(client, pod_namespace, terminationGracePeriodSeconds=600)
        pod = await delegated(client, pod_namespace)
        await client.discard(kinds.POD_CHAPERONS, chaperon)
        await kit.until_one(client, kinds.PODS, "web-1", pod_namespace, ends_in(600))
        for asked in (20, 0):
            hurry = {"metadata": {"annotations": {keys.GRACE_PERIOD: str(asked)}}}
            await client.patch(kinds.POD_CHAPERONS, "web-1", hurry, pod_namespace)
            await kit.until_one(client, kinds.PODS, "web-1", pod_namespace, ends_in(asked))

        await release(client, pod)
        await kit.until_gone(client, kinds.POD_CHAPERONS, pod_namespace)


async def test_an_admission_that_does_not_answer_is_told_in_its_own_words(
    client: Client, pod_namespace: str
) -> None:
    """A webhook that is down: an error of the server, which may pass."""
    name = f"dead-{pod_namespace}"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    hook = {
        "name": "dead.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": pod_namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    await client.create(VALIDATING_WEBHOOKS, {"metadata": {"name": name}, "webhooks": [hook]})
    try:
        async with controlled(client):
            await sent(client, pod_namespace)
            reported = await until_chaperon(
                client, pod_namespace, lambda known: bool(objects.status(known).get("conditions"))
            )
            condition = objects.condition(reported, "PodScheduled") or {}
            assert condition["reason"] == "Unschedulable"
            assert "dead.example.com" in condition["message"]

            await client.delete(VALIDATING_WEBHOOKS, name)
            await kit.until_one(client, kinds.PODS, "web-1", pod_namespace, objects.uid)
    finally:
        with suppress(NotFound):
            await client.delete(VALIDATING_WEBHOOKS, name)
