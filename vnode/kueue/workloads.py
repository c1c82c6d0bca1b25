"""Reads Workloads of Kueue, and builds the answers of a check in their status. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vnode.api import keys, objects, resources, visible
from vnode.api.errors import ConfigError
from vnode.api.objects import Object, Objects
from vnode.api.resources import Resources
from vnode.kueue import topology
from vnode.kueue.topology import Domain

PENDING: Final = "Pending"
READY: Final = "Ready"
RETRY: Final = "Retry"
REJECTED: Final = "Rejected"

_OF_MACHINES: Final = (resources.CPU, resources.MEMORY, "ephemeral-storage")
_MESSAGE: Final = 2048  # characters; Kueue allows 32768, and users read it on each workload


@dataclass(frozen=True, slots=True)
class PodSet:
    """So many equal pods of a workload, as its quota was reserved."""

    name: str
    template: Object
    count: int
    flavors: tuple[str, ...] = ()
    """The names of its ResourceFlavors."""
    domains: tuple[Domain, ...] = ()
    """Where Kueue puts its pods by topology; () without that."""
    counted: Resources = field(default_factory=dict)
    """What Kueue counts for each pod: a LimitRange or a RuntimeClass may add to its template."""


def pod_sets(workload: Object) -> list[PodSet]:
    """Return the pod sets that have quota: with `minCount` Kueue admits fewer than asked for."""
    admission = objects.status(workload).get("admission") or {}
    assigned = {each.get("name"): each for each in admission.get("podSetAssignments") or ()}
    found = []
    for each in objects.spec(workload).get("podSets") or ():
        name = str(each.get("name") or "main")
        assignment = assigned.get(name) or {}
        flavors = (assignment.get("flavors") or {}).values()
        count = int(assignment.get("count", each.get("count") or 0))
        found.append(
            PodSet(
                name,
                each.get("template") or {},
                count,
                tuple(dict.fromkeys(map(str, flavors))),
                topology.domains(assignment.get("topologyAssignment")),
                _counted(assignment.get("resourceUsage"), count),
            )
        )

    return found


def _counted(usage: Mapping[str, str] | None, count: int) -> Resources:
    """Return what each of so many pods takes of machines, by what all of them take of quota.

    Of other names a configuration of Kueue may have made others, which no node has.
    """
    try:
        total = resources.parse({k: v for k, v in (usage or {}).items() if k in _OF_MACHINES})
    except ConfigError:
        return {}

    return {name: -(-amount // count) for name, amount in total.items()} if count else {}


def has_quota(workload: Object) -> bool:
    """Tell whether quota is reserved for a workload that has not ended."""
    return (
        objects.is_condition_true(workload, "QuotaReserved")
        and not objects.is_condition_true(workload, "Finished")
        and not objects.is_condition_true(workload, "Evicted")
        and not objects.is_terminating(workload)
    )


def states(workload: Object, checks: Collection[str]) -> Objects:
    """Return what the status of a workload says of these checks."""
    listed: Objects = objects.status(workload).get("admissionChecks") or []
    return [entry for entry in listed if entry.get("name") in checks]


def answered(
    workload: Object,
    checks: Collection[str],
    answer: Mapping[str, object],
    now: datetime,
    *,
    instead_of: str = PENDING,
) -> Objects:
    """Return all checks of a workload, with that answer to ours that are `instead_of`.

    Kueue counts how often it had to retry; what is let in begins anew when it is evicted later.
    """
    listed: Objects = objects.status(workload).get("admissionChecks") or []
    counted = ("retryCount",) if answer["state"] != READY else ()
    return [
        entry
        if entry.get("name") not in checks or entry.get("state") != instead_of
        else {
            "name": entry["name"],
            "lastTransitionTime": objects.timestamp(now),
            **{field: entry[field] for field in counted if field in entry},
            **answer,
        }
        for entry in listed
    ]


def answer(
    state: str, message: str, *, updates: Iterable[Object] = (), retry_after: int | None = None
) -> dict[str, object]:
    """Build the answer to a check. Without a time to wait, Kueue would retry at once, for ever."""
    text = visible.line(message)
    found: dict[str, object] = {"state": state, "message": text[:_MESSAGE]}
    if updates := list(updates):
        found["podSetUpdates"] = updates

    return found if retry_after is None else {**found, "requeueAfterSeconds": retry_after}


def update(workload: Object, pod_set: str, selector: Mapping[str, str]) -> Object:
    """Build what holds the pods of a pod set in a target, and says which workload they are of."""
    mark = {keys.KUEUE_WORKLOAD: f"{objects.name(workload)}/{pod_set}"}
    found: Object = {"name": pod_set, "annotations": mark}
    return {**found, "nodeSelector": dict(selector)} if selector else found


def membership(pod: Object) -> tuple[str, str] | None:
    """Return the key of the workload that a pod is of, and its pod set; None without that."""
    mark = objects.annotations(pod).get(keys.KUEUE_WORKLOAD, "")
    name, _, pod_set = mark.partition("/")
    return (objects.join_key(objects.namespace(pod), name), pod_set) if pod_set else None


def held_in(entry: Object) -> dict[str, dict[str, str]]:
    """Return by pod set which labels of a virtual node the answer holds it to."""
    return {
        str(each.get("name")): dict(each.get("nodeSelector") or {})
        for each in entry.get("podSetUpdates") or ()
    }
