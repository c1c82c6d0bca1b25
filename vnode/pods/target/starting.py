"""Tells news of a pod that starts from the steps that each pod takes. Pure.

Between its binding and its first container a pod gets from its kubelet, one by one, what any pod
gets: containers that are being created, a sandbox. A report of each step costs a write in two
clusters. What keeps a container from starting, and conditions of others, are news.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object

_FIELDS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_USUAL_REASONS: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
_BY_TURNS: Final = {"ErrImagePull": "ImagePullBackOff"}  # a kubelet says both of one problem
_USUAL_CONDITIONS: Final = frozenset(
    {"PodScheduled", "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"}
)


def is_starting(pod: Object) -> bool:
    """Tell whether a pod has a node, and none of its containers has run yet, as far as it says."""
    if objects.status(pod).get("phase") != "Pending" or objects.is_terminating(pod):
        return False

    scheduled = objects.condition(pod, "PodScheduled") or {}
    return scheduled.get("status") == "True" and not any(map(_has_run, _containers(pod)))


def is_bound_alone(pod: Object) -> bool:
    """Tell whether the status of a pod that starts says nothing of its containers."""
    return next(_containers(pod), None) is None


def is_news(reported: Object, pod: Object) -> bool:
    """Tell whether a pod that starts has met something that is not in what was reported of it."""
    return not _unusual(pod) <= _unusual(reported)


def _containers(pod: Object) -> Iterator[Object]:
    for field in _FIELDS:
        yield from objects.status(pod).get(field) or ()


def _has_run(entry: Object) -> bool:
    states = (entry.get("state") or {}).keys() | (entry.get("lastState") or {}).keys()
    return bool(states - {"waiting"} or entry.get("restartCount"))


def _unusual(pod: Object) -> set[tuple[str, str, str]]:
    """Return what is not so of each pod that starts."""
    found = {("", "", str(reason)) for reason in [objects.status(pod).get("reason")] if reason}
    for entry in _containers(pod):
        reason = str(((entry.get("state") or {}).get("waiting") or {}).get("reason") or "")
        if reason not in _USUAL_REASONS:
            found.add(("", str(entry.get("name")), _BY_TURNS.get(reason, reason)))

    for condition in objects.status(pod).get("conditions") or ():
        if condition.get("type") not in _USUAL_CONDITIONS:
            kind, state = str(condition.get("type")), str(condition.get("status"))
            found.add((kind, state, str(condition.get("reason") or "")))

    return found
