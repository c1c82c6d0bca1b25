"""What a target's API server refuses: the user hears of it, and the pod runs once it may."""

from __future__ import annotations

from tests import kit
from vnode.api import keys, kinds, objects
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
                target, QUOTAS, "none", "default", lambda q: "hard" in objects.status(q), seconds=90
            )

        await source.create(kinds.PODS, kit.pod("over-quota"), "default")
        await kit.until_one(
            source, kinds.PODS, "over-quota", "default", lambda p: "exceeded quota" in message(p)
        )
        await c3.delete(QUOTAS, "none", "default")
        proxy = await kit.until_one(
            source,
            kinds.PODS,
            "over-quota",
            "default",
            lambda p: kit.phase(p) == "Running",
            seconds=70,
        )
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
