"""Pods as Admiralty's webhook leaves them: docs/admiralty-contract.md, section 5."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import Final

import yaml

from vnode.api.objects import Object

PREFIX: Final = "multicluster.admiralty.io/"
MANIFEST: Final = PREFIX + "sourcepod-manifest"
_TOLERATIONS: Final = (
    {"key": "virtual-kubelet.io/provider", "value": "admiralty"},
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists"},
)
_CONSTRAINTS: Final = ("nodeSelector", "affinity", "topologySpreadConstraints", "tolerations")


def admitted(pod: Object, finalizers: Collection[str] = ()) -> Object:
    """Return a pod with the annotation `elect` as it is once Admiralty has admitted it."""
    result = copy.deepcopy(pod)
    metadata, spec = result["metadata"], result["spec"]
    head = {"apiVersion": "v1", "kind": "Pod", "status": {}}
    saved = {**pod, **head, "metadata": {**pod["metadata"], "creationTimestamp": None}}
    own = {field: spec.pop(field) for field in _CONSTRAINTS if field in spec}
    spec |= {
        "nodeSelector": {"virtual-kubelet.io/provider": "admiralty"},
        "tolerations": [dict(each) for each in _TOLERATIONS],
        "schedulerName": "admiralty-proxy",
        "terminationGracePeriodSeconds": 0,
    }
    annotations = metadata.setdefault("annotations", {})
    wanted = yaml.safe_load(annotations.get(PREFIX + "proxy-pod-scheduling-constraints", "{}"))
    if PREFIX + "use-constraints-from-spec-for-proxy-pod-scheduling" in annotations:
        wanted = wanted or own

    spec["nodeSelector"] |= wanted.get("nodeSelector") or {}
    spec["tolerations"] += wanted.get("tolerations") or []
    spec |= {field: wanted[field] for field in _CONSTRAINTS[1:3] if field in wanted}
    annotations[MANIFEST] = yaml.safe_dump(saved)
    metadata.setdefault("labels", {})[PREFIX + "has-finalizer"] = "true"
    metadata["finalizers"] = list(finalizers)
    return result
