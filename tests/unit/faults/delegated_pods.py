"""A pod as it stands in its source and its target, made up for the tests of the fault harness."""

from __future__ import annotations

from tests.faults import snapshot
from vnode.api import keys, objects
from vnode.api.objects import Object


def proxy(name: str, app: str, *, node: str = "", phase: str = "Running") -> Object:
    spec = {"nodeName": node} if node else {}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": {snapshot.APP: app},
        "annotations": {snapshot.VERSION: "1"},
    }
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "podIP": "10.0.0.1"}}


def chaperon(pod: Object) -> Object:
    uid = objects.uid(pod)
    return {
        "metadata": {
            "name": f"{objects.name(pod)}-x",
            "namespace": "default",
            "uid": f"chaperon-{uid}",
            "labels": {keys.PARENT_UID: uid},
            "annotations": {keys.IS_ALLOWED: "true"},
        },
        "status": objects.status(pod),
    }


def delegate(owner: Object, parent: Object, *, uid: str = "") -> Object:
    return {
        "metadata": {
            "name": objects.name(owner),
            "namespace": "default",
            "uid": uid or f"delegate-{objects.uid(parent)}",
            "labels": {
                keys.PARENT_UID: objects.uid(parent),
                keys.PARENT_CLUSTER_NAME: "c1",
            },
            "annotations": {
                keys.PARENT_NAMESPACE: "default",
                keys.PARENT_NAME: objects.name(parent),
            },
            "ownerReferences": [{"controller": True, "uid": objects.uid(owner)}],
        },
        "spec": {"nodeName": "c2-node-0"},
        "status": dict(objects.status(parent)),
    }
