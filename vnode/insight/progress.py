"""Tells how far a pod is that starts, and how one that runs was restarted. Pure.

Neither is a failure: it may take its time, or go well from now on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight import failing, status_text
from vnode.insight.failing import Failure, FailureKind

_LONG: Final = timedelta(minutes=2)
"""After which it is said for how long a pod has been starting."""
_RECENT: Final = timedelta(minutes=10)
"""After which kubelets forget that a container has failed: the end of their back-off."""


def initializing(pod: Object) -> Object | None:
    """Return the status of the init container that runs; None if none does."""
    for container in objects.status(pod).get("initContainerStatuses") or ():
        if status_text.state(container)[0] == "running" and not container.get("started"):
            found: Object = container
            return found

    return None


def lasting(since: object, now: datetime) -> str:
    """Return `, for 5m` of what lasts long, since that API timestamp; else ""."""
    age = _since(since, now)
    return f", for {status_text.duration(age)}" if age is not None and age > _LONG else ""


def unstarted(pod: Object) -> str:
    """Return the container that runs and has not passed its startupProbe; "" for none."""
    found = (each for each in status_text.containers(pod) if each.get("started") is False)
    return next((str(e.get("name")) for e in found if status_text.state(e)[0] == "running"), "")


def unstarted_sidecar(pod: Object) -> Object | None:
    """Return the status of a sidecar that others wait for, as its startupProbe has not passed."""
    listed = objects.spec(pod).get("initContainers") or ()
    sidecars = {each.get("name") for each in listed if each.get("restartPolicy") == "Always"}
    initial = objects.status(pod).get("initContainerStatuses") or ()
    waited = (each for each in initial if each.get("started") is False)
    found = (each for each in waited if each.get("name") in sidecars)
    return next((each for each in found if status_text.state(each)[0] == "running"), None)


def is_under_way(pod: Object) -> bool:
    """Tell whether any container has started: volumes and network are there."""
    return any(status_text.state(each)[0] != "waiting" for each in status_text.containers(pod))


def restarted(pod: Object, now: datetime) -> Failure | None:
    """Return how a container ended lately that runs again; None if none has failed."""
    for container in status_text.containers(pod):
        last = (container.get("lastState") or {}).get("terminated") or {}
        since = _since(last.get("finishedAt"), now)
        runs = status_text.state(container)[0] == "running"
        if runs and last.get("exitCode") and since is not None and since < _RECENT:
            name, reason = str(container.get("name")), str(last.get("reason") or "Error")
            count = int(container.get("restartCount") or 0)
            times = "once" if count == 1 else f"{count} times"
            text = (
                f"container {name} was restarted {times}, last {status_text.duration(since)} ago "
                f"after {failing.ending(container)}"
            )
            code = int(last["exitCode"])
            return Failure(FailureKind.CRASH, reason, text, name, reason, code, is_restarted=True)

    return None


def _since(moment: object, now: datetime) -> timedelta | None:
    found = objects.parse_timestamp(str(moment or ""))
    return None if found is None or found.tzinfo is None else now - found
