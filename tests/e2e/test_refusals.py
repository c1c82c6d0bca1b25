"""What a target lacks or refuses: the user hears of it, and the pod runs once it may."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, NotFound
from vnode.api.kinds import Kind
from vnode.kube.client import Client

QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")


def message(pod: objects.Object) -> str:
    return str((objects.condition(pod, "PodScheduled") or {}).get("message"))


async def test_an_exceeded_quota_is_told_and_another_target_takes_the_pod(
    source: Client, c2: Client, c3: Client
) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    try:
        for target in (c2, c3):
            await target.create(QUOTAS, quota, "default")
            # A quota controller that has seen kinds come or go reads all lists anew at first.
            await kit.until_one(
                target, QUOTAS, "none", "default", lambda q: "hard" in objects.status(q)
            )

        await source.create(kinds.PODS, kit.pod("over-quota"), "default")
        await kit.until_refused(source, "over-quota", "no room in ResourceQuota none")
        await c3.delete(QUOTAS, "none", "default")
        proxy = await kit.until_running(source, "over-quota")
        assert objects.spec(proxy)["nodeName"] == "admiralty-default-c3"
    finally:
        for target in (c2, c3):
            for left in await target.list(QUOTAS, "default"):
                await target.discard(QUOTAS, left)


async def test_a_namesake_of_the_delegate_is_left_alone_and_named(c2: Client) -> None:
    await c2.create(kinds.PODS, kit.pod("taken", annotations={}), "default")
    chaperon = {
        "metadata": {"name": "taken", "labels": {keys.PARENT_UID: "u"}},
        "spec": objects.spec(kit.pod("taken")),
    }
    await c2.create(kinds.POD_CHAPERONS, chaperon, "default")
    await kit.until_one(
        c2, kinds.POD_CHAPERONS, "taken", "default", lambda c: "another pod" in message(c)
    )
    await c2.delete(kinds.POD_CHAPERONS, "taken", "default")
    await kit.until_gone(c2, kinds.POD_CHAPERONS, "default", field_selector="metadata.name=taken")
    assert not objects.is_terminating(await c2.get(kinds.PODS, "taken", "default"))
    await c2.delete(kinds.PODS, "taken", "default")


async def create_with_young_class(
    client: Client, pod: objects.Object, namespace: str = "default"
) -> None:
    """Create a pod whose PriorityClass was just made: the API server's own watch comes late."""
    async with asyncio.timeout(kit.PATIENCE):
        while True:
            try:
                await client.create(kinds.PODS, pod, namespace)
            except Denied as error:
                if "no PriorityClass" not in error.message:
                    raise

                await asyncio.sleep(0.05)  # nothing tells when
            else:
                return


async def test_a_class_that_targets_lack_is_named_and_no_candidate_is_made_until_it_is_there(
    source: Client, c2: Client, c3: Client
) -> None:
    sandbox = {"metadata": {"name": "sandbox"}, "handler": "runc"}
    urgent = {"metadata": {"name": "urgent"}, "value": 7}
    try:
        await source.create(kinds.RUNTIME_CLASSES, sandbox)
        await source.create(kinds.PRIORITY_CLASSES, urgent)
        classes: objects.Object = {"runtimeClassName": "sandbox", "priorityClassName": "urgent"}
        await create_with_young_class(source, kit.pod("classy", **classes))
        for text in ('RuntimeClass "sandbox" not found', 'PriorityClass "urgent" not found'):
            wanted = f"{text}: create it in the target"
            await kit.until_one(
                source, kinds.PODS, "classy", "default", lambda p, w=wanted: w in message(p)
            )

        await kit.until_event(
            source, "default", "involvedObject.name=classy,reason=FailedScheduling", "sandbox"
        )
        for target in (c2, c3):
            assert not await target.list(kinds.POD_CHAPERONS, "default")

        await c3.create(kinds.RUNTIME_CLASSES, sandbox)
        await c3.create(kinds.PRIORITY_CLASSES, urgent)
        proxy = await kit.until_running(source, "classy")
        assert objects.spec(proxy)["nodeName"] == "admiralty-default-c3"
        (delegate,) = await c3.list(kinds.PODS, "default")
        assert objects.spec(delegate)["priority"] == 7
    finally:
        for client in (source, c3):
            for kind, name in (
                (kinds.RUNTIME_CLASSES, "sandbox"),
                (kinds.PRIORITY_CLASSES, "urgent"),
            ):
                with suppress(NotFound):
                    await client.delete(kind, name)


async def test_a_pod_hears_which_objects_its_own_cluster_lacks(source: Client) -> None:
    sources = [
        {"configMapRef": {"name": "lost"}},
        {"secretRef": {"name": "spare", "optional": True}},
    ]
    body = kit.pod("lacking")
    body["spec"]["containers"][0]["envFrom"] = sources
    await source.create(kinds.PODS, body, "default")
    for reason, text in (
        ("MandatoryConfigMapNotFound", 'configmap "lost" not found in namespace default'),
        ("OptionalSecretNotFound", "the pod starts without it"),
    ):
        about = f"involvedObject.name=lacking,reason={reason}"
        await kit.until_event(source, "default", about, text)
