"""What is changed of a proxy while it runs reaches its delegate, and nothing else is touched."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests import kit, served
from tests.e2e.test_ends import placed
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

APP = keys.PREFIX + "app"
SIDECAR = {"name": "sidecar", "image": "busybox", "restartPolicy": "Always"}


async def changed(c2: Client, delegate: Object, condition: Callable[[Object], object]) -> Object:
    """Return the delegate, once the condition holds of it."""
    return await kit.until_one(c2, kinds.PODS, objects.name(delegate), "default", condition)


def container(pod: Object) -> Object:
    return objects.spec(pod)["containers"][0]


async def until_event(source: Client, name: str, reason: str, text: str) -> None:
    about = f"involvedObject.name={name},reason={reason}"
    await kit.until_event(source, "default", about, text)


async def test_a_pod_that_nobody_changes_costs_no_request(source: Client, c2: Client) -> None:
    """Its chaperon has no record, and got only the patch that allowed it, if any, and statuses."""
    proxy, chaperon, delegate = await placed(source, c2, "unchanged")
    live = await c2.get(kinds.POD_CHAPERONS, objects.name(chaperon), "default")
    assert objects.metadata(live)["generation"] == 1
    assert keys.SENT not in objects.annotations(live)
    assert keys.FED_BACK not in objects.annotations(proxy)
    region = "topology.kubernetes.io/region"  # copied from its node by a newer API server
    for client, pod in ((source, proxy), (c2, delegate)):
        copies = region in await served.labels_of_placed(client)
        assert objects.labels(pod).get(region) == ("c2" if copies else None)

    assert keys.PREFIX + "region" not in objects.labels(live)


async def test_labels_and_annotations_reach_the_delegate_and_leave_it(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    _proxy, _chaperon, delegate = await placed(source, c2, "relabelled")
    fleet.kubectl("c1", "label", "pod", "relabelled", "tier=front", "app=other", "--overwrite")
    fleet.kubectl("c1", "annotate", "pod", "relabelled", "example.com/note=one")
    after = await changed(
        c2,
        delegate,
        lambda p: (
            objects.labels(p).get(APP) == "other"
            and objects.labels(p).get(keys.PREFIX + "tier") == "front"
            and objects.annotations(p).get("example.com/note") == "one"
        ),
    )
    assert objects.uid(after) == objects.uid(delegate)
    fleet.kubectl("c1", "label", "pod", "relabelled", "tier-")
    fleet.kubectl("c1", "annotate", "pod", "relabelled", "example.com/note-")
    await changed(
        c2,
        delegate,
        lambda p: (
            keys.PREFIX + "tier" not in objects.labels(p)
            and "example.com/note" not in objects.annotations(p)
        ),
    )


async def test_what_the_target_did_to_a_delegate_stays(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    """Its label and annotation outlive changes of others; its annotation comes back, and may be
    changed in the source."""
    _proxy, _chaperon, delegate = await placed(source, c2, "both-sides")
    name = objects.name(delegate)
    theirs = {"labels": {"injected": "yes"}, "annotations": {"cni": "1"}}
    await c2.patch(kinds.PODS, name, {"metadata": theirs}, "default")
    await kit.until_one(
        source,
        kinds.PODS,
        "both-sides",
        "default",
        lambda p: objects.annotations(p).get("cni") == "1",
    )
    fleet.kubectl("c1", "annotate", "pod", "both-sides", "mine=2")
    after = await changed(c2, delegate, lambda p: objects.annotations(p).get("mine") == "2")
    assert objects.labels(after)["injected"] == "yes"
    assert objects.annotations(after)["cni"] == "1"

    fleet.kubectl("c1", "annotate", "pod", "both-sides", "cni=3", "--overwrite")
    await changed(c2, delegate, lambda p: objects.annotations(p).get("cni") == "3")
    await c2.patch(kinds.PODS, name, {"metadata": {"annotations": {"cni": None}}}, "default")
    await kit.until_one(
        source,
        kinds.PODS,
        "both-sides",
        "default",
        lambda p: "cni" not in objects.annotations(p),
    )


async def test_a_new_image_reaches_the_delegate(source: Client, c2: Client, fleet: Fleet) -> None:
    _proxy, _chaperon, delegate = await placed(source, c2, "reimaged", initContainers=[SIDECAR])
    fleet.kubectl("c1", "set", "image", "pod/reimaged", "main=busybox:2", "sidecar=busybox:3")
    after = await changed(c2, delegate, lambda p: container(p)["image"] == "busybox:2")
    assert objects.spec(after)["initContainers"][0]["image"] == "busybox:3"


async def report_resources(c2: Client, delegate: Object, cpu: str, *conditions: Object) -> None:
    """Report the resources of a container, as a kubelet does and kwok does not."""
    live = await c2.get(kinds.PODS, objects.name(delegate), "default")
    (status,) = objects.status(live)["containerStatuses"]
    given = {"cpu": cpu, "memory": "16Mi"}
    status = {**status, "allocatedResources": given, "resources": {"requests": given}}
    body = {
        "containerStatuses": [status],
        "conditions": [*objects.status(live)["conditions"], *conditions],
    }
    await c2.patch(
        kinds.PODS, objects.name(delegate), {"status": body}, "default", subresource="status"
    )


async def until_allocated(source: Client, name: str, cpu: str) -> Object:
    return await kit.until_one(
        source,
        kinds.PODS,
        name,
        "default",
        lambda p: (
            objects.status(p)["containerStatuses"][0].get("allocatedResources", {}).get("cpu")
            == cpu
        ),
    )


def resize(fleet: Fleet, cluster: str, name: str, cpu: str) -> None:
    requests = {"requests": {"cpu": cpu}}
    patch = {"spec": {"containers": [{"name": "main", "resources": requests}]}}
    words = ["patch", "pod", name, "--subresource", "resize", "--patch", json.dumps(patch)]
    fleet.kubectl(cluster, *words)


async def test_resources_are_resized_in_place(source: Client, c2: Client, fleet: Fleet) -> None:
    _proxy, _chaperon, delegate = await placed(source, c2, "resized")
    await report_resources(c2, delegate, "10m")
    await until_allocated(source, "resized", "10m")
    resize(fleet, "c1", "resized", "20m")
    after = await changed(
        c2, delegate, lambda p: container(p)["resources"]["requests"]["cpu"] == "20m"
    )
    assert container(after)["resources"]["requests"]["memory"] == "16Mi"

    resizing = {"type": "PodResizeInProgress", "status": "True"}
    await report_resources(c2, delegate, "20m", resizing)
    proxy = await until_allocated(source, "resized", "20m")
    assert objects.condition(proxy, "PodResizeInProgress") is not None
    assert objects.status(proxy)["containerStatuses"][0]["resources"]["requests"]["cpu"] == "20m"


async def test_a_resize_that_the_target_refuses_is_said_on_the_proxy(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    """A limit range of the target's namespace allows less than the source does."""
    _proxy, _chaperon, delegate = await placed(source, c2, "oversized")
    await report_resources(c2, delegate, "10m")
    await until_allocated(source, "oversized", "10m")
    limits = {"limits": [{"type": "Container", "max": {"cpu": "100m"}}]}
    limit = {"apiVersion": "v1", "kind": "LimitRange", "spec": limits}
    limit["metadata"] = {"name": "small"}
    fleet.kubectl("c2", "create", "-f", "-", input=json.dumps(limit))
    try:
        resize(fleet, "c1", "oversized", "2")
        await until_event(source, "oversized", "ChangeRefused", "cpu limit of 100m")
    finally:
        fleet.kubectl("c2", "delete", "limitrange", "small")

    fleet.kubectl("c1", "label", "pod", "oversized", "tier=front")
    await changed(c2, delegate, lambda p: keys.PREFIX + "tier" in objects.labels(p))


async def test_an_ephemeral_container_reaches_the_delegate_and_its_state_comes_back(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    _proxy, _chaperon, delegate = await placed(source, c2, "debugged")
    words = ["--image", "busybox", "--container", "shell", "--target", "main", "--attach=false"]
    fleet.kubectl("c1", "debug", "debugged", *words, "--", "sleep", "1")
    after = await changed(c2, delegate, lambda p: objects.spec(p).get("ephemeralContainers"))
    (shell,) = objects.spec(after)["ephemeralContainers"]
    assert (shell["name"], shell["targetContainerName"]) == ("shell", "main")
    assert shell["command"] == ["sleep", "1"]

    state = {
        "name": "shell",
        "image": "busybox",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }
    await c2.patch(
        kinds.PODS,
        objects.name(after),
        {"status": {"ephemeralContainerStatuses": [state]}},
        "default",
        subresource="status",
    )
    await kit.until_one(
        source,
        kinds.PODS,
        "debugged",
        "default",
        lambda p: "running" in str(objects.status(p).get("ephemeralContainerStatuses")),
    )


async def test_an_ephemeral_container_of_a_pending_pod_is_added_once_it_has_a_delegate(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    gated = kit.pod_in("c2", "early", schedulingGates=[{"name": "example.com/wait"}])
    await source.create(kinds.PODS, gated, "default")
    words = ["--image", "busybox", "--container", "shell", "--attach=false", "--", "true"]
    fleet.kubectl("c1", "debug", "early", *words)
    await source.patch(kinds.PODS, "early", {"spec": {"schedulingGates": None}}, "default")
    proxy = await kit.until_running(source, "early")
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    await kit.until(
        c2,
        kinds.PODS,
        lambda all_: any(objects.spec(p).get("ephemeralContainers") for p in all_.values()),
        namespace="default",
        label_selector=selector,
    )


async def test_a_refusal_of_the_target_is_said_on_the_proxy(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    """The target has an ephemeral container of that name already; other changes still arrive."""
    _proxy, _chaperon, delegate = await placed(source, c2, "refused")
    words = ["--image", "busybox", "--container", "shell", "--attach=false", "--"]
    fleet.kubectl("c2", "debug", objects.name(delegate), *words, "sleep", "1")
    fleet.kubectl("c1", "debug", "refused", *words, "sleep", "2")
    fleet.kubectl("c1", "label", "pod", "refused", "tier=front")
    await until_event(source, "refused", "ChangeRefused", "existing ephemeral containers")
    after = await changed(c2, delegate, lambda p: keys.PREFIX + "tier" in objects.labels(p))
    (shell,) = objects.spec(after)["ephemeralContainers"]
    assert shell["command"] == ["sleep", "1"]


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_changed_while_the_target_was_out_of_reach_arrives_when_it_is_back(
    source: Client, c2: Client, fleet: Fleet, *, restarted: bool
) -> None:
    _proxy, _chaperon, delegate = await placed(source, c2, "partitioned")
    fleet.run("partition", "c2")
    try:
        fleet.kubectl("c1", "label", "pod", "partitioned", "app=later", "--overwrite")
        fleet.kubectl("c1", "annotate", "pod", "partitioned", "note=later")
        fleet.kubectl("c1", "set", "image", "pod/partitioned", "main=busybox:later")
        if restarted:
            fleet.run("stop", "c1", "agent", "--kill")
            fleet.run("start", "c1", "agent")
    finally:
        fleet.run("heal", "c2")

    after = await kit.until_one(
        c2,
        kinds.PODS,
        objects.name(delegate),
        "default",
        lambda p: (
            objects.labels(p).get(APP) == "later"
            and objects.annotations(p).get("note") == "later"
            and container(p)["image"] == "busybox:later"
        ),
    )
    assert objects.uid(after) == objects.uid(delegate)


async def test_a_delegate_that_is_made_anew_has_all_changes(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    """The source is silent, so that the target replaces its lost delegate by itself."""
    _proxy, chaperon, delegate = await placed(source, c2, "renewed")
    fleet.kubectl("c1", "label", "pod", "renewed", "tier=front")
    fleet.kubectl("c1", "set", "image", "pod/renewed", "main=busybox:2")
    await changed(c2, delegate, lambda p: container(p)["image"] == "busybox:2")
    fleet.run("stop", "c1", "agent")
    try:
        name = objects.name(delegate)
        await c2.delete(kinds.PODS, name, "default", grace=0)
        await kit.until_one(
            c2,
            kinds.POD_CHAPERONS,
            objects.name(chaperon),
            "default",
            lambda c: keys.POD_MISSING_SINCE in objects.annotations(c),
        )
        long_ago = {"metadata": {"annotations": {keys.POD_MISSING_SINCE: "2026-01-01T00:00:00Z"}}}
        await c2.patch(kinds.POD_CHAPERONS, name, long_ago, "default")
        after = await kit.until_one(
            c2, kinds.PODS, name, "default", lambda p: objects.uid(p) != objects.uid(delegate)
        )
    finally:
        fleet.run("start", "c1", "agent")

    assert container(after)["image"] == "busybox:2"
    assert objects.labels(after)[keys.PREFIX + "tier"] == "front"
