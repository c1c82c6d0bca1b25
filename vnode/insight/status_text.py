"""Formats the status of pods and virtual nodes, and ages, as kubectl prints them. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from vnode.api import keys, names, objects, target_key
from vnode.api.errors import ConfigError
from vnode.api.objects import Object, Objects
from vnode.targets import source_rbac

_UNREADY = re.compile(r"containers with unready status: \[([^\]]*)\]")  # the kubelet's words
_SIDECAR = "Always"  # restartPolicy of an init container that keeps running


def is_proxy(pod: Object) -> bool:
    """Tell whether the pod runs, or is to run, in a target."""
    is_elected = objects.spec(pod).get("schedulerName") == keys.PROXY_SCHEDULER
    return is_elected or names.may_be_virtual_node(objects.node_name(pod))


def containers(pod: Object) -> Objects:
    """Return the statuses of the pod's containers, init containers first."""
    status = objects.status(pod)
    return [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]


def state(container: Object) -> tuple[str, Object]:
    """Return `waiting`, `running` or `terminated`, and the details of that state."""
    for name, detail in (container.get("state") or {}).items():
        return name, detail or {}

    return "waiting", {}


def pod_status(pod: Object) -> str:
    """Return the column STATUS of kubectl: the phase, or a more specific reason."""
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

        reason = _reason(name, detail)
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"

        return f"Init:{done}/{len(initial)}"

    states = [state(container) for container in status.get("containerStatuses") or ()]
    reasons = [_reason(name, detail) for name, detail in states if name != "running"]
    reason = next(filter(None, reasons), "")
    if reason == "Completed" and len(reasons) < len(states):
        return phase  # the others are still running

    return reason or phase


def _reason(name: str, detail: Object) -> str:
    """Return why a container does not run; `ExitCode:3` or `Signal:9` where no reason is given."""
    if reason := detail.get("reason"):
        return str(reason)

    if name != "terminated":
        return ""

    ended_by = detail.get("signal")
    return f"Signal:{ended_by}" if ended_by else f"ExitCode:{detail.get('exitCode', 0)}"


def unready_others(pod: Object) -> list[str]:
    """Return the containers that are not ready and not the proxy's: its target has added them.

    Their statuses do not come home, but the condition Ready, which names them, does.
    """
    condition = objects.condition(pod, "Ready") or {}
    found = _UNREADY.search(str(condition.get("message") or ""))
    if condition.get("status") != "False" or found is None:
        return []

    spec = objects.spec(pod)
    own = {c.get("name") for f in ("initContainers", "containers") for c in spec.get(f) or ()}
    return [name for name in found[1].split() if name not in own]


def ready(pod: Object) -> str:
    """Return `1/2`: how many containers are ready, of how many."""
    spec = objects.spec(pod)
    sidecars = {
        container.get("name")
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == _SIDECAR
    }
    counted = sidecars | {container.get("name") for container in spec.get("containers") or ()}
    is_ready = [c for c in containers(pod) if c.get("name") in counted and c.get("ready")]
    return f"{len(is_ready)}/{len(counted) + len(unready_others(pod))}"


def restarts(pod: Object) -> str:
    """Sum the restarts of the pod's containers."""
    return str(sum(int(container.get("restartCount") or 0) for container in containers(pod)))


def node_status(node: Object) -> str:
    """Return the column STATUS of a node, such as `Ready,SchedulingDisabled`."""
    status = str((objects.condition(node, "Ready") or {}).get("status", "Unknown"))
    parts = [{"True": "Ready", "False": "NotReady"}.get(status, "Unknown")]
    if objects.spec(node).get("unschedulable"):
        parts.append("SchedulingDisabled")

    return ",".join(parts)


def node_target(node: Object) -> str:
    """Return the key of the target behind a virtual node; "" if it is no node of vnode."""
    return str(target_key.of_node(node) or "")


def subject(source: Object) -> str:
    """Return the user or service account that a Source is for."""
    try:
        return str(source_rbac.parse(source))
    except ConfigError:
        return "<invalid>"


def age(since: str | None, now: datetime) -> str:
    """Format how long ago a timestamp is: `45s`, `5m10s`, `3h12m`, `2d4h`, `30d`, `2y30d`."""
    moment = objects.parse_timestamp(since) if since else None
    if moment is None:
        return "<unknown>"

    return duration(now - (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)))


def duration(length: timedelta) -> str:
    """Format a duration as kubectl does: two units where the larger one is small, else one."""
    seconds = int(length.total_seconds())
    if seconds < 0:
        return "0s"

    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    for is_small, text in (
        (seconds < 120, f"{seconds}s"),
        (minutes < 10, _two_units(minutes, "m", seconds % 60, "s")),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, _two_units(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (days < 8, _two_units(days, "d", hours % 24, "h")),
        (days < 730, f"{days}d"),
    ):
        if is_small:
            return text

    return _two_units(days // 365, "y", days % 365, "d")


def _two_units(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}" + (f"{small}{small_unit}" if small else "")
