"""A pod in a few words, as `kubectl get pods` says them. Pure."""

from __future__ import annotations

from vnode.api import keys, names, objects
from vnode.api.objects import Object, Objects

_SIDECAR = "Always"  # restartPolicy of an init container that keeps running


def is_proxy(pod: Object) -> bool:
    """The pod runs, or is to run, in a target."""
    spec = objects.spec(pod)
    return spec.get("schedulerName") == keys.PROXY_SCHEDULER or names.may_be_virtual_node(
        str(spec.get("nodeName") or "")
    )


def containers(pod: Object) -> Objects:
    """The statuses of its containers, init containers first."""
    status = objects.status(pod)
    return [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]


def state(container: Object) -> tuple[str, Object]:
    """`waiting`, `running` or `terminated`, and what is said of it."""
    for name, detail in (container.get("state") or {}).items():
        return name, detail or {}

    return "waiting", {}


def word(pod: Object) -> str:
    """What the column STATUS says: the phase, or what is special about it."""
    if objects.is_terminating(pod):
        return "Terminating"

    status = objects.status(pod)
    phase = str(status.get("reason") or status.get("phase") or "Unknown")
    if phase == "Pending" and (objects.spec(pod).get("schedulingGates")):
        return "SchedulingGated"

    initial = status.get("initContainerStatuses") or ()
    for done, container in enumerate(initial):
        name, detail = state(container)
        if name == "running" and container.get("started"):
            continue

        if name == "terminated" and not detail.get("exitCode"):
            continue

        reason = str(detail.get("reason") or "")
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"

        return f"Init:{done}/{len(initial)}"

    for container in reversed(status.get("containerStatuses") or ()):
        name, detail = state(container)
        if name != "running" and detail.get("reason"):
            return str(detail["reason"])

    return phase


def ready(pod: Object) -> str:
    """`1/2`: how many containers are ready, of how many."""
    spec = objects.spec(pod)
    sidecars = {
        container.get("name")
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == _SIDECAR
    }
    counted = sidecars | {container.get("name") for container in spec.get("containers") or ()}
    is_ready = [c for c in containers(pod) if c.get("name") in counted and c.get("ready")]
    return f"{len(is_ready)}/{len(counted)}"


def restarts(pod: Object) -> str:
    """How often its containers were started again, all together."""
    return str(sum(int(container.get("restartCount") or 0) for container in containers(pod)))
