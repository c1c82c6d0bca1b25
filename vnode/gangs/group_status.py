"""Says of a gang what its PodGroup tells users: whether it has been placed, or why not. Pure.

kube-scheduler writes a condition on Kubernetes' own PodGroups, from which `kubectl get podgroups`
has its column STATUS. It never sees pods that are elected, so that whoever places them says it, in
its words and by its rules: nothing before so many pods are there as start together, False while no
target takes them, and True for good once they have started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vnode.api import objects, visible
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.gangs.gang import Gang

_FIRST_NAME: Final = "PodGroupScheduled"
_NAME: Final = "PodGroupInitiallyScheduled"
CONDITIONS: Final = (_FIRST_NAME, _NAME)
"""What is read of the status of a group."""

_RENAMED_AFTER: Final = "v1alpha2"
_LIMIT: Final = 4096
"""Characters of a message; the API server takes 32 KiB."""


@dataclass(frozen=True, slots=True)
class GroupReport:
    """What is told of a gang."""

    is_placed: bool
    message: str


def report(gang: Gang, minimum: int | None, target: str) -> GroupReport | None:
    """Return what there is to tell of a gang, which is in that target; None if nothing."""
    if gang.is_started:
        return GroupReport(True, f"{minimum} pods, as many as start together, go to {target}")

    if gang.complete_since is None or not gang.unplaced:
        return None

    return GroupReport(False, visible.line(gang.unplaced)[:_LIMIT])


def condition(kind: Kind, group: Object, told: GroupReport, now: str) -> Object | None:
    """Return the condition of a PodGroup of Kubernetes' own; None if there is nothing to write."""
    name = _FIRST_NAME if kind.version == _RENAMED_AFTER else _NAME
    known, status = objects.condition(group, name) or {}, "True" if told.is_placed else "False"
    if known.get("status") == "True" or known.get("message") == told.message:
        return None

    since = known.get("lastTransitionTime") if known.get("status") == status else None
    made = {
        "type": name,
        "status": status,
        "reason": "Scheduled" if told.is_placed else "Unschedulable",
        "message": told.message,
        "lastTransitionTime": since or now,
    }
    if generation := objects.metadata(group).get("generation"):
        made["observedGeneration"] = generation

    return made
