"""Quotas and limits of targets, as real API servers and quota controllers keep them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import kit
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.errors import Denied
from vnode.api.objects import Object
from vnode.kube.client import Client

MESSAGE = "no room in ResourceQuota {} for pods 1, and {} of {} are used"


def message(pod: Object) -> str:
    return str((objects.condition(pod, "PodScheduled") or {}).get("message"))


async def set_quota(target: Client, name: str, hard: dict[str, str], **spec: Any) -> None:
    """Create or change a quota, and wait until the controller has counted what there is."""
    spec = {"hard": hard, **spec}
    if name in [objects.name(each) for each in await target.list(kinds.RESOURCE_QUOTAS, "default")]:
        await target.patch(kinds.RESOURCE_QUOTAS, name, {"spec": spec}, "default")
    else:
        body = {"metadata": {"name": name}, "spec": spec}
        await target.create(kinds.RESOURCE_QUOTAS, body, "default")

    def is_counted(quota: Object) -> bool:
        status = objects.status(quota)
        return bool(status.get("hard") == hard and status.get("used", {}).keys() == hard.keys())

    # A quota controller that has seen kinds come or go reads all lists anew at first.
    await kit.until_one(target, kinds.RESOURCE_QUOTAS, name, "default", is_counted)


@pytest.fixture(autouse=True)
async def _no_rules(c2: Client, c3: Client) -> AsyncIterator[None]:
    yield
    for target in (c2, c3):
        for kind in (kinds.RESOURCE_QUOTAS, kinds.LIMIT_RANGES):
            for left in await target.list(kind, "default"):
                await target.discard(kind, left)


async def test_a_burst_fills_the_quotas_of_all_targets_and_nothing_is_sent_beyond(
    fleet: Fleet, source: Client, c2: Client, c3: Client
) -> None:
    await set_quota(c2, "few", {"pods": "4"})
    await set_quota(c3, "fewer", {"pods": "3"})
    await source.create(kinds.DEPLOYMENTS, kit.deployment("many", 10, kit.pod("many")), "default")
    reasons = (MESSAGE.format("few", 4, 4), MESSAGE.format("fewer", 3, 3))

    def is_waiting(pod: Object) -> bool:
        return all(words in message(pod) for words in reasons)

    found = await kit.until(
        source,
        kinds.PODS,
        lambda pods: (
            sum(kit.phase(pod) == "Running" for pod in pods.values()) == 7
            and sum(map(is_waiting, pods.values())) == 3
        ),
        namespace="default",
    )
    waiting = next(pod for pod in found.values() if is_waiting(pod))
    for target, count in ((c2, 4), (c3, 3)):
        assert len(await target.list(kinds.POD_CHAPERONS, "default")) == count

    shown = vnode("explain", objects.name(waiting), "--kubeconfig", fleet.kubeconfig("c1")).out
    story = " ".join(shown.split())  # it is wrapped
    for words in reasons:
        assert words in story, story

    assert "kubectl edit resourcequota few" in story

    await set_quota(c3, "fewer", {"pods": "6"})
    await kit.until(source, kinds.PODS, lambda pods: kit.running(pods, 10), namespace="default")
    assert len(await c3.list(kinds.PODS, "default")) == 6


async def test_what_the_api_server_says_of_scopes_and_limits_is_told_in_its_words(
    source: Client, c2: Client, c3: Client
) -> None:
    await set_quota(c2, "compute", {"limits.cpu": "1"}, scopes=["NotBestEffort"])
    await set_quota(c3, "none", {"pods": "0"}, scopes=["NotTerminating"])

    async def is_told(name: str, by: Client = c2) -> None:
        """Assert that the target refuses a pod, and that the proxy says so in the same words."""
        path, body = kinds.PODS.path("default"), kit.pod(f"{name}-dry", annotations={})
        with pytest.raises(Denied) as refused:
            await by.request("POST", path, body=body, query={"dryRun": "All"})

        words = refused.value.message.partition("is forbidden: ")[2]
        await kit.until_one(source, kinds.PODS, name, "default", lambda p: words in message(p))

    await source.create(kinds.PODS, kit.pod("first"), "default")
    await is_told("first")
    await is_told("first", c3)
    limits = [{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "1m"}}]
    await c2.create(
        kinds.LIMIT_RANGES, {"metadata": {"name": "usual"}, "spec": {"limits": limits}}, "default"
    )
    await source.create(kinds.PODS, kit.pod("second"), "default")
    for name in ("first", "second"):
        proxy = await kit.until_running(source, name)
        assert objects.spec(proxy)["nodeName"] == "admiralty-default-c2"

    await source.create(kinds.PODS, kit.pod("third"), "default")
    await is_told("third")
    assert len(await c2.list(kinds.PODS, "default")) == 2
    ending = kit.pod("ending", activeDeadlineSeconds=600)
    await source.create(kinds.PODS, ending, "default")
    await kit.until_running(source, "ending")
    # The place of a pod that ends is the next one's, once the quota controller has seen that.
    await source.delete(kinds.PODS, "first", "default")
    await kit.until_running(source, "third")


async def test_a_candidate_that_waits_for_a_node_keeps_its_share_of_the_quota(
    source: Client, c2: Client, c3: Client
) -> None:
    for target in (c2, c3):
        await set_quota(target, "one", {"pods": "1"})

    huge = kit.pod("huge")
    huge["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3000"}}
    await source.create(kinds.PODS, huge, "default")
    for target in (c2, c3):  # each is asked, since each might grow
        await kit.until(
            target,
            kinds.RESOURCE_QUOTAS,
            lambda quotas: all(objects.status(q)["used"]["pods"] == "1" for q in quotas.values()),
            namespace="default",
        )

    await source.create(kinds.PODS, kit.pod("small"), "default")
    await kit.until_one(
        source, kinds.PODS, "small", "default", lambda p: MESSAGE.format("one", 1, 1) in message(p)
    )
    for target in (c2, c3):
        (candidate,) = await target.list(kinds.POD_CHAPERONS, "default")
        assert objects.name(candidate).startswith("huge")

    await source.delete(kinds.PODS, "huge", "default")
    await kit.until_running(source, "small")
