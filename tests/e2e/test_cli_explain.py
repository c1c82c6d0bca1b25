"""`vnode explain` tells the truth about real pods in each of the states that users meet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from tests import kit
from tests.e2e.outages import without_api_server
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


def explain(fleet: Fleet, name: str, namespace: str = "default") -> Object:
    where = ("-n", namespace, "--kubeconfig", fleet.kubeconfig("c1"))
    done = vnode("explain", "pod", name, "-o", "json", *where)
    assert done.code == 0, done.err
    story: Object = json.loads(done.out)
    return story


def event_text(story: Object, title: str) -> str:
    """Return what a chapter says, as one text."""
    [chapter] = [entry for entry in story["chapters"] if entry["title"] == title]
    return "\n".join(line["text"] for line in chapter["lines"])


async def created(
    source: Client, pod: Object, condition: Callable[[Object], bool] = bool
) -> Object:
    await source.create(kinds.PODS, pod, "default")
    name = objects.name(pod)
    return await kit.until_one(source, kinds.PODS, name, "default", condition)


def is_running(pod: Object) -> bool:
    return kit.phase(pod) == "Running"


def is_refused(pod: Object) -> bool:
    return (objects.condition(pod, "PodScheduled") or {}).get("status") == "False"


async def test_a_running_pod_with_its_delegate(fleet: Fleet, source: Client) -> None:
    pod = await created(source, kit.pod("fine"), is_running)
    story = explain(fleet, "fine")
    assert story["state"] == "Running"
    assert "elected by its own annotation" in event_text(story, "Admission")
    assert objects.spec(pod)["nodeName"] in event_text(story, "Decision")
    assert "container main: running" in event_text(story, "Delegate")
    text = vnode("explain", "fine", "--kubeconfig", fleet.kubeconfig("c1")).out
    assert text.startswith("Pod default/fine: Running\n\nAdmission\n")
    assert "\x1b" not in text


async def test_a_pod_that_was_not_elected(fleet: Fleet, source: Client) -> None:
    await created(source, kit.pod("plain", annotations={}))
    story = explain(fleet, "plain")
    assert story["state"] == "NotElected"
    assert keys.ELECT in story["cures"][0]


async def test_a_gated_pod(fleet: Fleet, source: Client) -> None:
    await created(source, kit.pod("gated", schedulingGates=[{"name": "example.com/later"}]))
    story = explain(fleet, "gated")
    assert story["state"] == "Gated"
    assert "example.com/later" in event_text(story, "Queue")


async def test_a_pod_that_no_target_takes_with_each_target_in_its_own_words(
    fleet: Fleet, source: Client
) -> None:
    await created(source, kit.pod("nowhere", nodeSelector={"no": "where"}), is_refused)
    story = explain(fleet, "nowhere")
    assert story["state"] == "Unschedulable"
    for name in ("c2", "c3"):
        reason = "node(s) didn't match Pod's node affinity/selector"
        assert reason in event_text(story, f"Target default/{name}")

    assert "show-labels" in story["cures"][0]


async def test_the_pods_of_a_deployment_with_the_cause_of_those_that_wait(
    fleet: Fleet, source: Client
) -> None:
    """Of two targets one is left out by the pods themselves, and is no reason."""
    template = kit.pod_in("c2", "web")
    large = {"requests": {"cpu": "1000"}}
    objects.spec(template)["containers"][0]["resources"] = large
    deployment = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {k: template[k] for k in ("metadata", "spec")},
        },
    }
    await source.create(kinds.DEPLOYMENTS, deployment, "default")
    pods = await kit.until_pods(
        source, "web", lambda all_: len(all_) == 2 and all(map(is_refused, all_.values()))
    )
    for pod in pods.values():
        told = (objects.condition(pod, "PodScheduled") or {})["message"]
        assert told.startswith("0/2 targets: c2: 0/3 nodes are available: 3 Insufficient cpu")
        assert "c3" not in told
        assert "preemption" not in told

    done = vnode("explain", "deployment/web", "--kubeconfig", fleet.kubeconfig("c1"))
    assert done.code == 0, done.err
    assert done.out.startswith("2 pods: web-")
    assert "  Unschedulable: c2: 0/3 nodes are available: 3 Insufficient cpu" in done.out
    assert "add nodes in the target" in done.out
    assert "compare" not in done.out


async def test_a_tenant_without_targets_hears_of_none(fleet: Fleet, source: Client) -> None:
    tenant = await kit.namespace_for_pods(source, "tenant")
    await source.create(kinds.PODS, kit.pod("alone"), tenant)
    pod = await kit.until_one(source, kinds.PODS, "alone", tenant, is_refused)
    story = explain(fleet, "alone", tenant)
    await source.delete(kinds.NAMESPACES, tenant)
    message = (objects.condition(pod, "PodScheduled") or {})["message"]
    assert message.startswith(f'0/0 targets: there is no Target in namespace "{tenant}"')
    assert story["state"] == "NoTarget"
    for text in (message, json.dumps(story)):
        assert "c2" not in text
        assert "default" not in text


async def test_a_candidate_that_waits_for_a_scheduler_that_does_not_run(
    fleet: Fleet, source: Client, c2: Client
) -> None:
    fleet.run("stop", "c2", "candidate-scheduler")
    try:
        pod = await created(source, kit.pod_in("c2", "waits"))
        selector = f"{keys.PARENT_UID}={objects.uid(pod)}"
        await kit.until(c2, kinds.PODS, bool, namespace="default", label_selector=selector)
        story = explain(fleet, "waits")
        assert (story["state"], story["message"]) == (
            "WaitingForTarget",
            "a candidate waits for the answer of c2",
        )
        assert "has not answered yet" in event_text(story, "Target default/c2")
    finally:
        fleet.run("start", "c2", "candidate-scheduler")


async def test_delegates_that_lack_a_config_map_or_an_image_or_that_crash(
    fleet: Fleet, source: Client, c2: Client
) -> None:
    fleet.run("stop", "c2", "kwok")
    try:
        lacking = kit.pod_in("c2", "lacking")
        reference = {"configMapRef": {"name": "settings"}}
        lacking["spec"]["containers"][0]["envFrom"] = [reference]
        pods = [lacking, *(kit.pod_in("c2", name) for name in ("image", "crash"))]
        bound = await asyncio.gather(
            *(created(source, pod, lambda p: bool(objects.spec(p).get("nodeName"))) for pod in pods)
        )
        await _say_like_a_kubelet(c2, bound[1], "ImagePullBackOff", "Back-off pulling image")
        ended = {"exitCode": 137, "reason": "OOMKilled"}
        await _say_like_a_kubelet(
            c2, bound[2], "CrashLoopBackOff", "back-off 20s", restarts=2, ended=ended
        )
        story = explain(fleet, "lacking")
        assert story["state"] == "NotStarting"
        assert 'ConfigMap "settings"' in story["message"]
        assert 'create ConfigMap "settings" in namespace default of this' in story["cures"][0]
        story = explain(fleet, "image")
        assert story["message"] == "container main: ImagePullBackOff: Back-off pulling image"
        story = explain(fleet, "crash")
        assert (story["state"], story["message"]) == (
            "Crashing",
            "container main: CrashLoopBackOff: OOMKilled, exit code 137, 2 restarts",
        )
        assert story["cures"][0] == "kubectl logs crash -n default -c main --previous"
    finally:
        fleet.run("start", "c2", "kwok")


async def _say_like_a_kubelet(
    target: Client,
    proxy: Object,
    reason: str,
    message: str,
    *,
    restarts: int = 0,
    ended: Object | None = None,
) -> None:
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    [delegate] = (
        await kit.until(target, kinds.PODS, bool, namespace="default", label_selector=selector)
    ).values()
    waiting = {"waiting": {"reason": reason, "message": message}}
    container = {
        "name": "main",
        "image": "busybox",
        "imageID": "",
        "ready": False,
        "restartCount": restarts,
        "state": waiting,
        "lastState": {"terminated": ended} if ended else {},
    }
    body = {"status": {"containerStatuses": [container]}}
    name = objects.name(delegate)
    await target.patch(kinds.PODS, name, body, "default", subresource="status")


async def test_a_pod_that_cannot_end_because_its_target_is_away(
    fleet: Fleet, source: Client
) -> None:
    pod = await created(source, kit.pod("stuck"), is_running)
    name = objects.spec(pod)["nodeName"].removeprefix("admiralty-default-")
    async with without_api_server(fleet, source, name):
        await kit.until_one(
            source,
            kinds.TARGETS,
            name,
            "default",
            lambda target: (objects.condition(target, "Ready") or {}).get("status") == "False",
        )
        assert explain(fleet, "stuck")["state"] == "TargetUnreachable"
        node = objects.spec(pod)["nodeName"]
        await kit.until_one(source, kinds.NODES, node, "", lambda node: not kit.is_ready(node))
        listed = vnode("get", "pods", "-n", "default", "--kubeconfig", fleet.kubeconfig("c1")).out
        assert "TargetUnreachable" in listed
        await source.delete(kinds.PODS, "stuck", "default")
        story = explain(fleet, "stuck")
        assert story["state"] == "StuckTerminating"
        assert any(f"vnode disconnect default/{name}" in cure for cure in story["cures"])
        assert "could not be read from here" in event_text(story, f"Target default/{name}")

    await kit.until_gone(source, kinds.PODS, "default")
