"""Conditions of a proxy are its writers': what the source's controllers set stays, and what a
readiness gate waits for reaches the delegate."""

from __future__ import annotations

import json
from typing import Any

from tests import kit
from tests.e2e.test_ends import placed
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

GATE = "example.com/lb-ready"
CHECKED = "example.com/checked"
EVICTED = "DisruptionTarget"


def set_condition(fleet: Fleet, cluster: str, name: str, **condition: str) -> None:
    """Patch a condition of a pod as a controller or a user does: the list is merged by type."""
    patch = json.dumps({"status": {"conditions": [condition]}})
    fleet.kubectl(cluster, "patch", "pod", name, "--subresource=status", "--patch", patch)


async def until_condition(client: Client, name: str, type_: str, status: str) -> Object:
    """Return the pod, once its condition has that status."""
    return await kit.until_one(
        client, kinds.PODS, name, "default", lambda pod: kit.has_condition(pod, type_, status)
    )


async def evict(source: Client, name: str) -> None:
    eviction = {"metadata": {"name": name, "namespace": "default"}}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", **eviction}
    await source.create(kinds.PODS, body, "default", name=name, subresource="eviction")


async def until_fed_back(source: Client, fleet: Fleet, name: str) -> Object:
    """Return the proxy, after its status was brought up to date with its delegate's once more."""
    set_condition(fleet, "c1", name, type="Ready", status="False", reason="NodeNotReady")
    return await until_condition(source, name, "Ready", "True")


async def test_a_pod_whose_node_was_lost_for_a_while_is_ready_again(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    _proxy, _chaperon, delegate = await placed(source, c2, "lost-for-a-while")
    lost = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
    set_condition(fleet, "c2", objects.name(delegate), **lost)
    await until_condition(source, "lost-for-a-while", "Ready", "False")
    await until_condition(c2, objects.name(delegate), "Ready", "True")
    await until_condition(source, "lost-for-a-while", "Ready", "True")
    await source.delete(kinds.PODS, "lost-for-a-while", "default")


async def test_an_eviction_stays_on_the_proxy_until_it_is_gone(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    proxy, _chaperon, delegate = await placed(source, c2, "evicted")
    name = objects.name(delegate)
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await c2.patch(kinds.PODS, name, held, "default")
    try:
        await evict(source, "evicted")
        await kit.until_one(c2, kinds.PODS, name, "default", objects.is_terminating)
        after = await until_fed_back(source, fleet, "evicted")
    finally:
        await c2.patch(kinds.PODS, name, {"metadata": {"finalizers": None}}, "default")

    assert objects.is_terminating(after)
    assert (objects.condition(after, EVICTED) or {}).get("reason") == "EvictionByEvictionAPI"
    seen = [after]

    def gone(pods: dict[str, Object]) -> bool:
        seen.extend(pods.values())
        return not pods

    only = f"metadata.name={objects.name(proxy)}"
    await kit.until(source, kinds.PODS, gone, namespace="default", field_selector=only)
    assert all(kit.has_condition(pod, EVICTED, "True") for pod in seen)


async def test_a_job_that_ignores_disruptions_survives_an_eviction(source: Client) -> None:
    """Its pod ends as failed; that is no failure of the Job, as the condition is still there."""
    annotations = {keys.ELECT: "", "pod-complete.stage.kwok.x-k8s.io/delay": "600s"}
    template = kit.pod("", annotations=annotations, restartPolicy="Never")
    rules = [{"action": "Ignore", "onPodConditions": [{"type": EVICTED, "status": "True"}]}]
    spec = {
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": rules},
        "template": {
            "metadata": {"annotations": annotations, "labels": {"app": "disrupted"}},
            "spec": template["spec"],
        },
    }
    await source.create(kinds.JOBS, {"metadata": {"name": "disrupted"}, "spec": spec}, "default")
    watched: dict[str, Any] = {"namespace": "default", "label_selector": "app=disrupted"}
    pods = await kit.until(source, kinds.PODS, lambda all_: kit.running(all_, 1), **watched)
    (proxy,) = pods.values()
    await evict(source, objects.name(proxy))
    await kit.until(
        source,
        kinds.PODS,
        lambda all_: objects.key(proxy) not in all_ and kit.running(all_, 1),
        **watched,
    )
    job = await source.get(kinds.JOBS, "disrupted", "default")
    assert objects.status(job).get("failed", 0) == 0
    assert objects.condition(job, "Failed") is None


async def test_a_condition_of_the_targets_comes_and_goes_and_the_sources_own_stays(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    _proxy, _chaperon, delegate = await placed(source, c2, "checked")
    name = objects.name(delegate)
    set_condition(fleet, "c1", "checked", type="example.com/own", status="True")
    set_condition(fleet, "c2", name, type=CHECKED, status="True")
    after = await until_condition(source, "checked", CHECKED, "True")
    assert kit.has_condition(after, "example.com/own", "True")

    gone = {"status": {"conditions": [{"$patch": "delete", "type": CHECKED}]}}
    fleet.kubectl("c2", "patch", "pod", name, "--subresource=status", "--patch", json.dumps(gone))
    after = await kit.until_one(
        source,
        kinds.PODS,
        "checked",
        "default",
        lambda pod: objects.condition(pod, CHECKED) is None,
    )
    assert kit.has_condition(after, "example.com/own", "True")
    assert keys.FED_BACK_CONDITIONS not in objects.annotations(after)


async def test_a_readiness_gate_is_the_sources_to_open(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    """The simulated kubelet opens gates by itself, and never looks at them again."""
    gates = [{"conditionType": GATE}]
    _proxy, _chaperon, delegate = await placed(source, c2, "gated", readinessGates=gates)
    name = objects.name(delegate)
    await until_condition(source, "gated", GATE, "True")
    set_condition(fleet, "c1", "gated", type=GATE, status="False", reason="Draining")
    there = await until_condition(c2, name, GATE, "False")
    assert (objects.condition(there, GATE) or {})["reason"] == "Draining"
    proxy = await until_condition(source, "gated", "Ready", "False")
    assert (objects.condition(proxy, "Ready") or {})["reason"] == "ReadinessGatesNotReady"

    set_condition(fleet, "c1", "gated", type=GATE, status="True")
    await until_condition(c2, name, GATE, "True")
    assert kit.has_condition(await until_condition(source, "gated", "Ready", "True"), GATE, "True")

    set_condition(fleet, "c2", name, type=GATE, status="False")
    set_condition(fleet, "c2", name, type=CHECKED, status="True")
    assert kit.has_condition(await until_condition(source, "gated", CHECKED, "True"), GATE, "True")


async def test_generations_that_are_observed_are_the_proxys(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    """They differ: the proxy's scheduling gates were lifted."""
    held = kit.pod_in("c2", "numbered", schedulingGates=[{"name": "example.com/wait"}])
    await source.create(kinds.PODS, held, "default")
    await source.patch(kinds.PODS, "numbered", {"spec": {"schedulingGates": None}}, "default")
    proxy = await kit.until_running(source, "numbered")
    own = objects.metadata(proxy)["generation"]
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (delegate,) = await c2.list(kinds.PODS, "default", label_selector=selector)
    theirs = objects.metadata(delegate)["generation"]
    assert own > theirs

    observe(fleet, delegate, theirs)
    await until_observed(source, own)
    fleet.kubectl("c1", "set", "image", "pod/numbered", "main=busybox:2")
    changed = await kit.until_one(
        c2,
        kinds.PODS,
        objects.name(delegate),
        "default",
        lambda p: objects.metadata(p)["generation"] > theirs,
    )
    set_condition(fleet, "c2", objects.name(delegate), type=CHECKED, status="True")
    assert (
        objects.status(await until_condition(source, "numbered", CHECKED, "True"))[
            "observedGeneration"
        ]
        == own
    )
    observe(fleet, changed, objects.metadata(changed)["generation"])
    await until_observed(source, own + 1)


def observe(fleet: Fleet, pod: Object, generation: int) -> None:
    """Report that a generation of a pod was observed, as a kubelet does and kwok does not."""
    ready = {"type": "Ready", "status": "True", "observedGeneration": generation}
    patch = json.dumps({"status": {"observedGeneration": generation, "conditions": [ready]}})
    fleet.kubectl("c2", "patch", "pod", objects.name(pod), "--subresource=status", "-p", patch)


async def until_observed(source: Client, generation: int) -> None:
    proxy = await kit.until_one(
        source,
        kinds.PODS,
        "numbered",
        "default",
        lambda p: objects.status(p).get("observedGeneration") == generation,
    )
    assert (objects.condition(proxy, "Ready") or {})["observedGeneration"] == generation


async def test_a_status_comes_home_though_there_is_no_room_for_an_annotation(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    """What is long in the pod's spec is in the manifest that its proxy keeps as an annotation."""
    long = kit.pod_in("c2", "full")
    objects.spec(long)["containers"][0]["env"] = [{"name": "LONG", "value": "x" * 200_000}]
    await source.create(kinds.PODS, long, "default")
    proxy = await kit.until_running(source, "full")
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (delegate,) = await c2.list(kinds.PODS, "default", label_selector=selector)
    name = objects.name(delegate)
    theirs = {"metadata": {"annotations": {"example.com/cni": "x" * 70_000}}}
    await c2.patch(kinds.PODS, name, theirs, "default")
    failed = {"status": {"phase": "Failed", "reason": "Evicted"}}
    await c2.patch(kinds.PODS, name, failed, "default", subresource="status")
    await kit.until_one(source, kinds.PODS, "full", "default", lambda p: kit.phase(p) == "Failed")
    about = "involvedObject.name=full,reason=FeedbackRefused"
    await kit.until_event(source, "default", about, "bytes of annotations")
