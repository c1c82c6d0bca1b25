"""Results of delegates, and what these are known by, against who cleans up in their target."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests import kit
from tests.e2e.test_ends import placed
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

MOUNTS = 40_000  # in etcd of the pod 1.2 MB, in that of its chaperon, which is JSON, 2 MB


def has_phase(obj: Object) -> bool:
    return objects.status(obj).get("phase") == "Succeeded"


def finish(fleet: Fleet, folder: Path, delegate: Object, mounts: int = 0) -> None:
    """Write of a delegate that it has succeeded, as its kubelet does."""
    entry = {
        "name": "main",
        "image": "busybox",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        "volumeMounts": [{"name": "v", "mountPath": f"/data/{n:05}"} for n in range(mounts)],
    }
    body = {"status": {"phase": "Succeeded", "containerStatuses": [entry]}}
    patch = folder / "status.json"
    patch.write_bytes(msgspec.json.encode(body))
    words = ["pod", objects.name(delegate), "--subresource=status", f"--patch-file={patch}"]
    fleet.kubectl("c2", "patch", *words)


async def test_a_result_arrives_though_the_delegate_was_cleaned_up_while_the_source_was_away(
    source: Client, c2: Client, fleet: Fleet, tmp_path: Path
) -> None:
    proxy, chaperon, delegate = await placed(source, c2, "result", restartPolicy="Never")
    name = objects.name(chaperon)
    fleet.run("stop", "c1", "agent")
    try:
        finish(fleet, tmp_path, delegate)
        await kit.until_one(c2, kinds.POD_CHAPERONS, name, "default", has_phase)
        await c2.delete(kinds.PODS, name, "default")
        await kit.until_one(
            c2,
            kinds.POD_CHAPERONS,
            name,
            "default",
            lambda obj: keys.POD_MISSING_SINCE in objects.annotations(obj),
        )
    finally:
        fleet.run("start", "c1", "agent")

    pod = await kit.until_one(source, kinds.PODS, "result", "default", has_phase)
    assert objects.uid(pod) == objects.uid(proxy)
    (entry,) = objects.status(pod)["containerStatuses"]
    assert entry["state"]["terminated"]["reason"] == "Completed"
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    await kit.until_gone(c2, kinds.POD_CHAPERONS, "default", label_selector=selector)
    assert not objects.is_terminating(await source.get(kinds.PODS, "result", "default"))
    events = await source.list(kinds.EVENTS, "default")
    told = {e["reason"] for e in events if e["involvedObject"].get("uid") == objects.uid(proxy)}
    assert "DelegateLost" not in told


async def test_a_result_arrives_though_the_status_is_larger_than_etcd_takes_of_a_chaperon(
    source: Client, c2: Client, fleet: Fleet, tmp_path: Path
) -> None:
    _proxy, _chaperon, delegate = await placed(source, c2, "large", restartPolicy="Never")
    finish(fleet, tmp_path, delegate, MOUNTS)
    pod = await kit.until_one(source, kinds.PODS, "large", "default", has_phase)
    (entry,) = objects.status(pod)["containerStatuses"]
    assert entry["state"]["terminated"]["exitCode"] == 0


async def test_a_chaperon_gets_its_label_back_and_its_pod_runs_on(
    source: Client, c2: Client
) -> None:
    proxy, chaperon, delegate = await placed(source, c2, "label", owner=True)
    name, labels = objects.name(chaperon), {keys.PARENT_UID: None, keys.PARENT_CLUSTER_NAME: None}
    await c2.patch(kinds.POD_CHAPERONS, name, {"metadata": {"labels": labels}}, "default")
    await kit.until_one(
        c2,
        kinds.POD_CHAPERONS,
        name,
        "default",
        lambda obj: objects.labels(obj).get(keys.PARENT_UID) == objects.uid(proxy),
    )
    live = await source.get(kinds.PODS, objects.name(proxy), "default")
    assert objects.uid(live) == objects.uid(proxy)
    assert not objects.is_terminating(live)
    assert objects.uid(await c2.get(kinds.PODS, name, "default")) == objects.uid(delegate)
