"""What an API server does with pods alone: defaults, what may change, and how they end."""

from __future__ import annotations

from typing import Any, Final

from tests.apiserver import copying, resources, status
from vnode.api import kinds, objects
from vnode.api.objects import Object

_GRACE: Final = 30  # seconds
_SPEC: Final[Object] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": _GRACE,
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "securityContext": {},
    "enableServiceLinks": True,
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
}
_CONTAINER: Final[Object] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
_CHANGEABLE: Final = (
    "activeDeadlineSeconds",
    "tolerations",
    "terminationGracePeriodSeconds",
    "schedulingGates",
)
_FORBIDDEN: Final = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def with_defaults(pod: Object) -> Object:
    """Fill in what a manifest leaves out."""
    spec = {**_SPEC, **objects.spec(pod)}
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [{**_CONTAINER, **container} for container in spec[field] or ()]

    return {**pod, "spec": spec}


def check_update(old: Object, new: Object) -> None:
    """Refuse a change of what is immutable; StatusError."""
    if _immutable(old) != _immutable(new):
        raise status.invalid(kinds.PODS, objects.name(old), "spec", _FORBIDDEN)

    before, after = _by_key(old, "schedulingGates"), _by_key(new, "schedulingGates")
    if not after.keys() <= before.keys():
        cause = "Forbidden: only deletion is allowed, but found new scheduling gates"
        raise status.invalid(kinds.PODS, objects.name(old), "spec.schedulingGates", cause)

    added = objects.spec(new).get("tolerations") or ()
    if any(entry not in added for entry in objects.spec(old).get("tolerations") or ()):
        raise status.invalid(kinds.PODS, objects.name(old), "spec.tolerations", _FORBIDDEN)


def _immutable(pod: Object) -> Object:
    spec = {k: v for k, v in objects.spec(pod).items() if k not in _CHANGEABLE}
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [{k: v for k, v in c.items() if k != "image"} for c in spec[field]]

    return spec


def resized(old: Object, new: Object) -> Object:
    """Take the resources of containers, and nothing else, from `new`."""
    result = copying.deep(old)
    for field in ("containers", "initContainers"):
        wanted = _by_key(new, field)
        for container in objects.spec(result).get(field) or ():
            if container["name"] in wanted:
                container["resources"] = wanted[container["name"]].get("resources") or {}

    return result


def with_ephemeral(old: Object, new: Object) -> Object:
    """Take the ephemeral containers, and nothing else, from `new`; those that exist must stay."""
    before, after = _by_key(old, "ephemeralContainers"), _by_key(new, "ephemeralContainers")
    if any(after.get(name) != container for name, container in before.items()):
        cause = "Forbidden: existing ephemeral containers may not be removed or changed"
        raise status.invalid(kinds.PODS, objects.name(old), "spec.ephemeralContainers", cause)

    entries = [{**_CONTAINER, **container} for container in after.values()]
    return {**old, "spec": {**objects.spec(old), "ephemeralContainers": entries}}


def _by_key(pod: Object, field: str) -> dict[str, Any]:
    return {entry["name"]: entry for entry in objects.spec(pod).get(field) or ()}


def grace(pod: Object, asked: int | None) -> int:
    """Decide how many seconds the kubelet gets to end a pod; none where no kubelet has it."""
    if not objects.spec(pod).get("nodeName") or objects.is_finished(pod):
        return 0

    if asked is not None:
        return max(asked, 0)

    own = objects.spec(pod).get("terminationGracePeriodSeconds")
    return _GRACE if own is None else int(own)


def bound(pod: Object, binding: Object, now: str) -> Object:
    """Put a pod on the node that a Binding names; StatusError if that cannot be."""
    name, node = objects.name(pod), str((binding.get("target") or {}).get("name") or "")
    if not node:
        raise status.invalid(resources.BINDINGS, name, "target.name", "Required value")

    wanted = objects.uid(binding)
    if wanted and wanted != objects.uid(pod):
        raise status.precondition(kinds.PODS, name, "UID", wanted, objects.uid(pod))

    version, present = objects.resource_version(binding), objects.resource_version(pod)
    if version and version != present:
        raise status.precondition(kinds.PODS, name, "ResourceVersion", version, present)

    if objects.is_terminating(pod):
        raise _unbindable(name, f"pod {name} is being deleted, cannot be assigned to a host")

    if before := objects.spec(pod).get("nodeName"):
        raise _unbindable(name, f'pod {name} is already assigned to node "{before}"')

    if objects.spec(pod).get("schedulingGates"):
        raise _unbindable(name, f"pod {name} has non-empty .spec.schedulingGates")

    result = copying.deep(pod)
    result["spec"]["nodeName"] = node
    if annotations := objects.annotations(binding):
        result["metadata"]["annotations"] = {**objects.annotations(pod), **annotations}

    if labels := objects.labels(binding):
        result["metadata"]["labels"] = {**labels, **objects.labels(pod)}

    entry = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    others = [c for c in objects.status(pod).get("conditions") or () if c["type"] != entry["type"]]
    result["status"] = {**objects.status(pod), "conditions": [*others, entry]}
    return result


def _unbindable(name: str, why: str) -> status.StatusError:
    return status.conflict(kinds.PODS, f"{name}/binding", why)
