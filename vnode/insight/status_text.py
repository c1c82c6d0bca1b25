"""Pods, virtual nodes and ages in a few words, as kubectl says them. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from vnode.api import keys, names, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object, Objects
from vnode.nodes import virtual
from vnode.targets import source_rbac

_SIDECAR = "Always"  # restartPolicy of an init container that keeps running


def is_proxy(pod: Object) -> bool:
    """The pod runs, or is to run, in a target."""
    is_elected = objects.spec(pod).get("schedulerName") == keys.PROXY_SCHEDULER
    return is_elected or names.may_be_virtual_node(objects.node_name(pod))


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


def pod_status(pod: Object) -> str:
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

        reason = _reason(name, detail)
        if reason and reason != "PodInitializing":
            return f"Init:{reason}"

        return f"Init:{done}/{len(initial)}"

    states = [state(container) for container in status.get("containerStatuses") or ()]
    reasons = [_reason(name, detail) for name, detail in states if name != "running"]
    said = next(filter(None, reasons), "")
    if said == "Completed" and len(reasons) < len(states):
        return phase  # the others run on

    return said or phase


def _reason(name: str, detail: Object) -> str:
    """Why a container does not run; `ExitCode:3` or `Signal:9` where nobody says."""
    if reason := detail.get("reason"):
        return str(reason)

    if name != "terminated":
        return ""

    ended_by = detail.get("signal")
    return f"Signal:{ended_by}" if ended_by else f"ExitCode:{detail.get('exitCode', 0)}"


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


def node_status(node: Object) -> str:
    """`Ready,SchedulingDisabled` and the like."""
    status = str((objects.condition(node, "Ready") or {}).get("status", "Unknown"))
    words = [{"True": "Ready", "False": "NotReady"}.get(status, "Unknown")]
    if objects.spec(node).get("unschedulable"):
        words.append("SchedulingDisabled")

    return ",".join(words)


def node_target(node: Object) -> str:
    """The target behind a virtual node; "" if it is none of ours."""
    return str(virtual.target_of(node) or "")


def subject(source: Object) -> str:
    """Whom a Source lets in."""
    try:
        return str(source_rbac.parse(source))
    except ConfigError:
        return "<invalid>"


def age(since: str | None, now: datetime) -> str:
    """How long ago a timestamp is: `45s`, `5m10s`, `3h12m`, `2d4h`, `30d`, `2y30d`."""
    moment = objects.parse_timestamp(since) if since else None
    if moment is None:
        return "<unknown>"

    return duration(now - (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)))


def duration(length: timedelta) -> str:
    """As kubectl says it: two units where the larger one is small, else one."""
    seconds = int(length.total_seconds())
    if seconds < 0:
        return "0s"

    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    for is_small, text in (
        (seconds < 120, f"{seconds}s"),
        (minutes < 10, _two(minutes, "m", seconds % 60, "s")),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, _two(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (days < 8, _two(days, "d", hours % 24, "h")),
        (days < 730, f"{days}d"),
    ):
        if is_small:
            return text

    return _two(days // 365, "y", days % 365, "d")


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}" + (f"{small}{small_unit}" if small else "")
