"""Tells which workload a pod belongs to, from the pod alone: policies plan workloads. Pure.

The key is made of names rather than of UIDs, so that it can be shown, and so that an object that is
deleted and made anew is the same workload. Pods of a workload come and go, and a rollout has two
ReplicaSets, which are one workload. Owners of owners are not read (that would take a watch on every
kind there is): where one workload has several, as a JobSet has Jobs, a policy's `groupBy` names the
label that its pods have in common.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from vnode.api import objects, visible
from vnode.api.objects import Object
from vnode.planning.policy import Policy

_LONGEST_NAME: Final = 253

# Groups whose kinds are known by their kind alone, as `kubectl get deployment` knows them.
_PLAIN_GROUPS: Final = frozenset(("", "apps", "batch"))

# Group and kind of what owns a pod -> the label of pods with which the owner's name ends, and the
# group and kind of what made that owner. Argo Rollouts makes ReplicaSets of its own, too.
_REPLICA_SET: Final = ("apps", "ReplicaSet")
_MAKERS: Final = (
    ("pod-template-hash", "apps", "Deployment"),
    ("rollouts-pod-template-hash", "argoproj.io", "Rollout"),
)


def workload_of(pod: Object, group_by: str = "") -> str:
    """Return the key of a pod's workload, such as `deployment/default/web`.

    That is the value of the label `group_by` if the pod has it, else its controller, else the pod
    by itself.
    """
    namespace = objects.namespace(pod)
    if group_by and (value := objects.labels(pod).get(group_by)):
        return f"label/{namespace}/{group_by}={value}"  # no object has "=" in its name

    owner = objects.controller_reference(pod)
    if owner is None:
        return f"pod/{namespace}/{objects.name(pod)}"

    group, kind, name = _maker(owner, pod)
    spelt = kind if group in _PLAIN_GROUPS else f"{kind}.{group}"
    spelt = _shown(spelt).lower().replace("/", "")  # else it could pass for another namespace
    return f"{spelt}/{namespace}/{_shown(name)}"


def namespace_of(workload: str) -> str:
    """Return the namespace in the key of a workload, "" of what is none."""
    return workload.partition("/")[2].partition("/")[0]


class PlannedWorkload(NamedTuple):
    """A workload of a policy that plans."""

    workload: str
    group_by: str


def planned_workload_of(pod: Object, policy: Policy | None) -> PlannedWorkload | None:
    """Return the workload of a pod of that policy, None if it plans nothing."""
    if policy is None or not policy.has_plan:
        return None

    return PlannedWorkload(workload_of(pod, policy.group_by), policy.group_by)


def _maker(owner: Object, pod: Object) -> tuple[str, str, str]:
    """Return group, kind and name of the controller, or of the Deployment that made it."""
    group, slash, _ = str(owner.get("apiVersion", "")).partition("/")
    kind, name = str(owner.get("kind", "")), str(owner.get("name", ""))
    if not slash:
        group = ""  # of "v1"

    if (group, kind) == _REPLICA_SET:
        labels = objects.labels(pod)
        for label, makers_group, maker in _MAKERS:
            suffix = f"-{labels.get(label, '')}"
            if suffix != "-" and name.endswith(suffix) and name != suffix:
                return makers_group, maker, name[: -len(suffix)]

    return group, kind, name


def _shown(words: str) -> str:
    """Clean and bound what whoever wrote the owner reference may have chosen freely."""
    return visible.line(words)[:_LONGEST_NAME]
