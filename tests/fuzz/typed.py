"""Refuses objects that an API server would refuse because of their types or their size.

The API server in memory takes any JSON. A real one knows the types of all fields; here it is those
of a sample that has something everywhere. Nor does etcd store more than 1.5 MiB: an agent that is
sent more by its own API server lists again and again, which no source or target can bring about.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tests.apiserver.requests import APIRequest
from tests.apiserver.status import StatusError
from vnode.api import kinds, objects, pod_shape, resources
from vnode.api.errors import VnodeError
from vnode.api.objects import Object

_STORED: Final = 1_572_864  # bytes; --max-request-bytes of etcd, by default
_MAPS: Final = frozenset({"nodeSelector", "requests", "limits", "labels", "annotations"})

CONTAINER: Final[Object] = {
    "name": "main",
    "image": "busybox",
    "command": ["sleep", "1"],
    "env": [{"name": "A", "value": "b"}],
    "ports": [{"containerPort": 80, "protocol": "TCP"}],
    "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"cpu": "1"}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
SPEC: Final[Object] = {
    "containers": [CONTAINER],
    "initContainers": [{**CONTAINER, "name": "init"}],
    "ephemeralContainers": [{**CONTAINER, "name": "debug"}],
    "schedulerName": "x",
    "nodeName": "",
    "restartPolicy": "Always",
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "nodeSelector": {"a": "b"},
    "affinity": {"nodeAffinity": {}},
    "readinessGates": [{"conditionType": "example.com/gate"}],
    "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
    "terminationGracePeriodSeconds": 3,
}
"""The spec of a pod that has something everywhere."""


def fits(sample: Any, value: Any, field: str = "") -> bool:
    """Tell whether a value has the types of the sample, as far as they have fields in common."""
    match sample:
        case _ if value is None:
            return True
        case dict() if field in _MAPS:
            return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        case dict():
            return isinstance(value, dict) and all(
                fits(sample[key], member, key) for key, member in value.items() if key in sample
            )
        case list():
            return isinstance(value, list) and all(fits(sample[0], each) for each in value)
        case _:
            return type(value) is type(sample)


def refuse(request: APIRequest, obj: Object) -> Object:
    """Refuse a pod whose fields have wrong types, and what is too large; an admission."""
    if request.kind is kinds.PODS and not is_pod(obj):
        raise StatusError(400, "BadRequest", "Pod in version v1 cannot be handled as a Pod")

    return storable(obj)


def storable(obj: Object) -> Object:
    """Return the object; StatusError if it is too large for etcd."""
    if len(msgspec.json.encode(obj)) > _STORED:
        raise StatusError(422, "Invalid", "etcdserver: request is too large")

    return obj


def is_pod(obj: Object) -> bool:
    """Tell whether an API server takes the object for a pod."""
    spec = objects.spec(obj)
    if not (pod_shape.is_pod(obj) and fits(SPEC, spec) and spec.get("containers")):
        return False

    try:
        resources.pod_requests(obj)
    except VnodeError:
        return False

    return all(None not in (c.get("name"), c.get("image")) for c in spec["containers"])
