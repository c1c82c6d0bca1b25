"""Override policies: delegates that differ, target by target, from pods that stay as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e.test_following import secret, user_of
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


@pytest.fixture(autouse=True)
async def _no_policies(source: Client) -> AsyncIterator[None]:
    yield
    for kind in (kinds.OVERRIDE_POLICIES, kinds.CLUSTER_OVERRIDE_POLICIES):
        await source.request("DELETE", kind.path("default" if kind.namespaced else None))


async def policy(
    source: Client, name: str, app: str, *rules: Object, cluster: bool = False, priority: int = 0
) -> None:
    """Create a policy for the pods of an app, and wait until the agent has accepted it."""
    kind = kinds.CLUSTER_OVERRIDE_POLICIES if cluster else kinds.OVERRIDE_POLICIES
    namespace = None if cluster else "default"
    spec = {"selector": {"matchLabels": {"app": app}}, "rules": rules, "priority": priority}
    await source.create(kind, {"metadata": {"name": name}, "spec": spec}, namespace)
    await kit.until_one(
        source, kind, name, namespace or "", lambda p: has_condition_with(p, "Accepted", "True")
    )


def has_condition_with(policy: Object, type_: str, status: str, text: str = "") -> bool:
    found = objects.condition(policy, type_) or {}
    return found.get("status") == status and text in found.get("message", "")


async def delegate_of(source: Client, target: Client, name: str) -> Object:
    """Return the delegate of a pod, once both run."""
    proxy = await kit.until_running(source, name)
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (delegate,) = await target.list(kinds.PODS, "default", label_selector=selector)
    return delegate


def container(pod: Object) -> Object:
    found: Object = objects.spec(pod)["containers"][0]
    return found


async def test_a_delegate_is_as_its_target_wants_it_and_stays_so(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    reference = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "override-key", "key": "k"}}}
    await source.create(kinds.SECRETS, secret("override-key", k="v"), "default")
    pod = user_of("mirrored", dnsPolicy="ClusterFirst")
    name, app = objects.name(pod), objects.labels(pod)["app"]
    everywhere = {"image": [{"registry": "all.example", "tag": "1"}], "labels": {"fleet": "yes"}}
    await policy(source, "everywhere", app, everywhere, cluster=True)
    there = {
        "clusters": {"names": ["c2"]},
        "image": [{"registry": "mirror.example:5000"}],
        "env": [{"set": [reference]}],
        "patches": [{"op": "add", "path": "/spec/securityContext/runAsUser", "value": 7}],
    }
    elsewhere = {"clusters": {"names": ["c3"]}, "image": [{"registry": "c3.example"}]}
    await policy(source, "there", app, there, elsewhere)
    await source.create(kinds.PODS, pod, "default")

    delegate = await delegate_of(source, c2, name)
    assert container(delegate)["image"] == "mirror.example:5000/busybox:1"
    assert container(delegate)["env"] == [reference]
    assert objects.spec(delegate)["securityContext"]["runAsUser"] == 7
    assert objects.labels(delegate)["fleet"] == "yes"
    assert await c2.get(kinds.SECRETS, "override-key", "default")
    proxy = await source.get(kinds.PODS, name, "default")
    assert (container(proxy)["image"], "env" in container(proxy)) == ("busybox", False)
    assert "fleet" not in objects.labels(proxy)

    # The policies go, and the proxy changes: what made the delegate still counts for it.
    fleet.kubectl("c1", "delete", "ovpol", "there")
    fleet.kubectl("c1", "delete", "covpol", "everywhere")
    fleet.kubectl("c1", "set", "image", f"pod/{name}", "main=busybox:9")
    fleet.kubectl("c1", "label", "pod", name, "tier=front")
    await kit.until_one(
        c2,
        kinds.PODS,
        objects.name(delegate),
        "default",
        lambda p: objects.labels(p).get(keys.PREFIX + "tier") == "front",
    )
    after = await c2.get(kinds.PODS, objects.name(delegate), "default")
    assert container(after)["image"] == "mirror.example:5000/busybox:1"
    assert objects.labels(after)["fleet"] == "yes"
    assert objects.uid(after) == objects.uid(delegate)
    assert await c2.get(kinds.SECRETS, "override-key", "default")
    await source.delete(kinds.SECRETS, "override-key", "default")


async def test_a_patch_that_fails_keeps_the_pod_from_its_target_until_it_is_mended(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    pod = user_of("unpatched", dnsPolicy="ClusterFirst")
    name, app = objects.name(pod), objects.labels(pod)["app"]
    bad = {"patches": [{"op": "test", "path": "/spec/dnsPolicy", "value": "Default"}]}
    await policy(source, "bad", app, {"clusters": {"names": ["c2"]}, **bad})
    await source.create(kinds.PODS, pod, "default")
    text = "overridepolicy/default/bad, rules[0]: patches[0] (test /spec/dnsPolicy)"
    await kit.until_event(
        source, "default", f"involvedObject.name={name},reason=FailedScheduling", text
    )
    await kit.until_one(
        source,
        kinds.OVERRIDE_POLICIES,
        "bad",
        "default",
        lambda p: has_condition_with(p, "Applicable", "False", f"pod/default/{name} is not sent"),
    )
    assert await c2.list(kinds.POD_CHAPERONS, "default") == []

    good = [{"labels": {"mended": "yes"}}]
    await source.patch(kinds.OVERRIDE_POLICIES, "bad", {"spec": {"rules": good}}, "default")
    assert objects.labels(await delegate_of(source, c2, name))["mended"] == "yes"
    await kit.until_one(
        source,
        kinds.OVERRIDE_POLICIES,
        "bad",
        "default",
        lambda p: has_condition_with(p, "Applicable", "True"),
    )


async def test_a_policy_that_cannot_be_used_says_so_and_its_pods_wait(
    source: Client, c3: Client
) -> None:
    """The CRD lets it pass: that a registry is one is for the agent to tell."""
    pod = user_of("unusable", "c3", dnsPolicy="ClusterFirst")
    name, app = objects.name(pod), objects.labels(pod)["app"]
    spec = {
        "selector": {"matchLabels": {"app": app}},
        "rules": [{"image": [{"registry": "no host"}]}],
    }
    await source.create(
        kinds.OVERRIDE_POLICIES, {"metadata": {"name": "unusable"}, "spec": spec}, "default"
    )
    await kit.until_one(
        source,
        kinds.OVERRIDE_POLICIES,
        "unusable",
        "default",
        lambda p: has_condition_with(p, "Accepted", "False", "registry is no host"),
    )
    await source.create(kinds.PODS, pod, "default")
    about = f"involvedObject.name={name},reason=FailedScheduling"
    await kit.until_event(source, "default", about, "overridepolicy/default/unusable is not")
    await source.delete(kinds.OVERRIDE_POLICIES, "unusable", "default")
    assert container(await delegate_of(source, c3, name))["image"] == "busybox"
