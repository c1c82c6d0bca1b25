"""The main job: annotated pods of c1 run in c2 and c3, and look as if they ran in c1."""

from __future__ import annotations

import pytest

from tests import kit
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects, permissions
from vnode.api.objects import Object
from vnode.kube.client import Client

C2 = names.virtual_node("default", "c2")
C3 = names.virtual_node("default", "c3")


async def delegates_of(client: Client, pod: objects.Object) -> list[objects.Object]:
    selector = f"{keys.PARENT_UID}={objects.uid(pod)}"
    return await client.list(kinds.PODS, "default", label_selector=selector)


async def run_pod(source: Client, pod: objects.Object, phase: str = "Running") -> objects.Object:
    await source.create(kinds.PODS, pod, "default")
    return await kit.until_one(
        source, kinds.PODS, objects.name(pod), "default", lambda p: kit.phase(p) == phase
    )


async def test_an_annotated_pod_runs_in_a_target_and_shows_its_state(
    source: Client, c2: Client, c3: Client
) -> None:
    proxy = await run_pod(source, kit.pod("plain"))
    assert objects.spec(proxy)["nodeName"] in (C2, C3)
    found = [*await delegates_of(c2, proxy), *await delegates_of(c3, proxy)]
    assert len(found) == 1
    assert objects.status(found[0])["podIP"] == objects.status(proxy)["podIP"]
    assert objects.labels(found[0])[keys.PREFIX + "app"] == "plain"
    assert kit.is_ready(proxy)


async def test_a_deployment_spreads_over_the_targets(
    source: Client, c2: Client, c3: Client
) -> None:
    await source.create(
        kinds.DEPLOYMENTS, kit.deployment("spread", 12, kit.pod("spread")), "default"
    )
    pods = await kit.until_pods(source, "spread", lambda all_: kit.running(all_, 12))
    nodes = [objects.spec(pod)["nodeName"] for pod in pods.values()]
    assert nodes.count(C2) == nodes.count(C3) == 6
    for client, node in ((c2, C2), (c3, C3)):
        selector = f"{keys.PREFIX}app=spread"
        assert len(await client.list(kinds.PODS, "default", label_selector=selector)) == 6, node

    await source.delete(kinds.DEPLOYMENTS, "spread", "default", propagation="Background")
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=spread")


async def test_losing_candidates_are_deleted(source: Client, c2: Client, c3: Client) -> None:
    proxy = await run_pod(source, kit.pod("winner"))
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    winner, loser = (c2, c3) if objects.spec(proxy)["nodeName"] == C2 else (c3, c2)
    await kit.until_gone(loser, kinds.POD_CHAPERONS, "default", label_selector=selector)
    chaperons = await winner.list(kinds.POD_CHAPERONS, "default", label_selector=selector)
    assert len(chaperons) == 1
    assert permissions.is_allowed(chaperons[0])


async def test_a_job_completes(source: Client) -> None:
    template = kit.pod("once", restartPolicy="Never")
    job: Object = {
        "metadata": {"name": "once"},
        "spec": {
            "completions": 2,
            "parallelism": 2,
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }
    job["spec"]["template"]["metadata"] = {
        "annotations": objects.annotations(template),
        "labels": {"app": "once"},
    }
    await source.create(kinds.JOBS, job, "default")
    done = await kit.until_one(
        source,
        kinds.JOBS,
        "once",
        "default",
        lambda j: (objects.condition(j, "Complete") or {}).get("status") == "True",
    )
    assert objects.status(done)["succeeded"] == 2


async def test_init_containers_show(source: Client) -> None:
    init = {"name": "prepare", "image": "busybox"}
    proxy = await run_pod(source, kit.pod("with-init", initContainers=[init]))
    assert objects.status(proxy)["initContainerStatuses"][0]["name"] == "prepare"


async def test_restarts_show(source: Client, c2: Client, c3: Client) -> None:
    proxy = await run_pod(source, kit.pod("restarting"))
    home = c2 if objects.spec(proxy)["nodeName"] == C2 else c3
    (delegate,) = await delegates_of(home, proxy)
    statuses = objects.status(delegate)["containerStatuses"]
    statuses[0]["restartCount"] = 3
    await home.patch(
        kinds.PODS,
        objects.name(delegate),
        {"status": {"containerStatuses": statuses}},
        "default",
        subresource="status",
    )
    await kit.until_one(
        source,
        kinds.PODS,
        "restarting",
        "default",
        lambda p: objects.status(p)["containerStatuses"][0]["restartCount"] == 3,
    )


async def test_a_pod_that_no_target_takes_says_why_target_by_target(
    source: Client, fleet: Fleet
) -> None:
    await source.create(kinds.PODS, kit.pod("nowhere", nodeSelector={"disk": "none"}), "default")
    proxy = await kit.until_one(
        source,
        kinds.PODS,
        "nowhere",
        "default",
        lambda p: (
            "c3:" in str((objects.condition(p, "PodScheduled") or {}).get("message"))
            or "c2, c3:" in str((objects.condition(p, "PodScheduled") or {}).get("message"))
        ),
    )
    condition = objects.condition(proxy, "PodScheduled")
    assert condition is not None
    assert condition["reason"] == "Unschedulable"
    assert "0/2 targets" in condition["message"]
    assert "node(s) didn't match Pod's node affinity/selector" in condition["message"]
    about = "involvedObject.name=nowhere,reason=FailedScheduling"
    await kit.until_event(source, "default", about)
    assert "0/2 targets" in fleet.kubectl("c1", "describe", "pod", "nowhere")
    await source.delete(kinds.PODS, "nowhere", "default")
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=nowhere")


async def test_a_rejected_pod_runs_as_soon_as_a_target_has_room(source: Client, c3: Client) -> None:
    await source.create(kinds.PODS, kit.pod("patient", nodeSelector={"late": "yes"}), "default")
    await kit.until_one(
        source,
        kinds.PODS,
        "patient",
        "default",
        lambda p: "0/2" in str((objects.condition(p, "PodScheduled") or {}).get("message")),
    )
    node = objects.name((await c3.list(kinds.NODES))[0])
    await c3.patch(kinds.NODES, node, {"metadata": {"labels": {"late": "yes"}}})
    try:
        proxy = await kit.until_running(source, "patient")
        assert objects.spec(proxy)["nodeName"] == C3
    finally:
        await c3.patch(kinds.NODES, node, {"metadata": {"labels": {"late": None}}})


async def test_a_pod_older_than_its_target_is_held_until_its_delegate_ends(
    source: Client, c3: Client
) -> None:
    """Such a pod was admitted without the finalizer; here, it is taken off."""
    await source.create(kinds.PODS, kit.pod("older", nodeSelector={"older": "yes"}), "default")
    await kit.until_one(
        source,
        kinds.PODS,
        "older",
        "default",
        lambda p: "0/2" in str((objects.condition(p, "PodScheduled") or {}).get("message")),
    )
    await source.patch(kinds.PODS, "older", {"metadata": {"finalizers": []}}, "default")
    node = objects.name((await c3.list(kinds.NODES))[0])
    await c3.patch(kinds.NODES, node, {"metadata": {"labels": {"older": "yes"}}})
    try:
        proxy = await kit.until_running(source, "older")
    finally:
        await c3.patch(kinds.NODES, node, {"metadata": {"labels": {"older": None}}})

    assert objects.finalizers(proxy) == [names.finalizer("default", "c3")]


async def test_a_pod_without_any_target_says_so(c2: Client) -> None:
    """c2 is nobody's source."""
    await kit.namespace_for_pods(c2, "lonely", elected=True)
    await c2.create(kinds.PODS, kit.pod("lonely", annotations={}), "lonely")
    await kit.until_one(
        c2,
        kinds.PODS,
        "lonely",
        "lonely",
        lambda p: "no Target" in str((objects.condition(p, "PodScheduled") or {}).get("message")),
    )
    await c2.delete(kinds.NAMESPACES, "lonely")


async def test_without_reservation_the_pod_keeps_its_own_scheduler(
    source: Client, c2: Client, c3: Client
) -> None:
    annotations = {keys.ELECT: "", keys.NO_RESERVATION: ""}
    proxy = await run_pod(source, kit.pod("unreserved", annotations=annotations))
    found = [*await delegates_of(c2, proxy), *await delegates_of(c3, proxy)]
    assert len(found) == 1
    assert objects.spec(found[0])["schedulerName"] == "default-scheduler"


async def test_a_pod_bound_to_a_virtual_node_by_somebody_else_gets_a_delegate(
    source: Client, c2: Client
) -> None:
    pod = kit.pod("by-name", annotations={}, nodeName=C2)
    proxy = await run_pod(source, pod)
    assert len(await delegates_of(c2, proxy)) == 1
    await source.delete(kinds.PODS, "by-name", "default")
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=by-name")
    assert not await delegates_of(c2, proxy)


async def test_a_proxy_on_a_real_node_is_its_kubelets(source: Client) -> None:
    pod = kit.pod("real", annotations={}, nodeName="c1-node-0", schedulerName=keys.PROXY_SCHEDULER)
    await run_pod(source, pod)
    other = await run_pod(source, kit.pod("meanwhile"))
    assert objects.spec(other)["nodeName"] in (C2, C3)
    assert not objects.is_terminating(await source.get(kinds.PODS, "real", "default"))


async def test_constraints_for_the_proxy_choose_the_target(source: Client) -> None:
    for target, node in (("c2", C2), ("c3", C3)):
        proxy = await run_pod(source, kit.pod_in(target, f"only-{target}"))
        assert objects.spec(proxy)["nodeName"] == node


@pytest.mark.parametrize(
    ("annotation", "value", "cure"),
    [
        (keys.PROXY_CONSTRAINTS, "nodeSelctor: {}", "nodeSelctor"),
        (keys.PROXY_CONSTRAINTS, "{", "proxy-pod-scheduling-constraints"),
        (keys.NO_PREFIX_LABEL_REGEXP, "(", "no-prefix-label-regexp"),
    ],
)
def test_malformed_annotations_are_rejected_with_their_name(
    fleet: Fleet, annotation: str, value: str, cure: str
) -> None:
    pod = kit.pod("malformed", annotations={keys.ELECT: "", annotation: value})
    with pytest.raises(AssertionError, match=cure):
        fleet.kubectl("c1", "create", "-f", "-", input=__import__("json").dumps(pod))
