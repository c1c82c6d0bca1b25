"""Pods in all states that users meet, and what `vnode explain` knows of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.insight.facts import Facts, TargetFacts

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NODE = "admiralty-default-c2"


def at(seconds: float) -> str:
    """Return the timestamp of that many seconds ago."""
    return objects.timestamp(NOW - timedelta(seconds=seconds))


def proxy(*, node: str = "", phase: str = "Pending", **more: Any) -> Object:
    spec: Object = {
        "schedulerName": keys.PROXY_SCHEDULER,
        "containers": [{"name": "main", "image": "app:1"}],
    }
    if node:
        spec["nodeName"] = node

    metadata = {"name": "web", "namespace": "default", "creationTimestamp": at(60)}
    metadata["annotations"] = {keys.ELECT: ""}  # type: ignore[assignment]
    return {
        "metadata": {**metadata, **more.pop("metadata", {})},
        "spec": {**spec, **more.pop("spec", {})},
        "status": {"phase": phase, **more},
    }


def refused(message: str) -> list[Object]:
    return [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    ]


def target(name: str = "c2", *, ready: bool = True, why: str = "", **more: Any) -> TargetFacts:
    condition = {"type": "Ready", "status": str(ready), "reason": "Some", "message": why}
    obj = {
        "metadata": {"name": name, "namespace": "default"},
        "status": {"conditions": [condition]},
    }
    return TargetFacts(TargetKey("default", name), obj, **more)


def chaperon(*annotations: str, message: str = "") -> Object:
    status = {"conditions": refused(message)} if message else {}
    metadata = {
        "name": "web-x",
        "namespace": "default",
        "annotations": dict.fromkeys(annotations, "true"),
    }
    return {"metadata": metadata, "status": status}


def crash_loop(**last: Any) -> Object:
    """Return a container that was started again four times, and how it ended last."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
    return {"restartCount": 4, "state": waiting, "lastState": {"terminated": last}}


def delegate(phase: str = "Running", *, container: Object | None = None, **metadata: Any) -> Object:
    status: Object = {"phase": phase}
    if container is not None:
        status["containerStatuses"] = [{"name": "main", "image": "app:1", "state": container}]

    return {
        "metadata": {"name": "web-x", "namespace": "default", **metadata},
        "spec": {"nodeName": "worker-1", "containers": [{"name": "main"}]},
        "status": status,
    }


def facts(pod: Object, *targets: TargetFacts, **more: Any) -> Facts:
    return Facts(pod, NOW, targets=targets, **more)


def lease(age: float) -> Object:
    renewed = objects.micro_timestamp(NOW - timedelta(seconds=age))
    return {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed}}


def namespace(*, enabled: bool = True, elected: bool = False) -> Object:
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    return {
        "metadata": {
            "name": "default",
            "labels": {label: value} if enabled else {},
            "annotations": {keys.ELECT: ""} if elected else {},
        }
    }


def plain(*, annotations: tuple[str, ...] = (), owner: str = "") -> Object:
    metadata: Object = {"name": "web", "namespace": "default"}
    metadata["annotations"] = dict.fromkeys(annotations, "")
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": "o", "uid": "u", "controller": True}]

    return {"metadata": metadata, "spec": {}, "status": {"phase": "Running"}}


ALLOWED = chaperon(keys.IS_RESERVED, keys.IS_ALLOWED)
ENDING = {"deletionTimestamp": at(5), "finalizers": ["multicluster.admiralty.io/c2"]}
GATES = {"schedulingGates": [{"name": "example.com/gate"}]}
