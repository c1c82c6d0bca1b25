"""Reads of PodGroups how many pods start together. Pure.

Each API has its own words for it, and Kubernetes' own has changed them from version to version:
what is not known here is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.gangs.membership import GangKey, GroupApi

FIELDS: Final = ("minMember", "schedulingPolicy")
"""What is read of the spec of a group."""

NO_GANG: Final = 0
"""The minimum of a group whose pods need not start together."""


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """What is known of a group: its minimum, or why that is not known, with the cure."""

    minimum: int | None = None
    problem: str = ""


def standing(key: GangKey, group: Object) -> GroupStanding:
    """Return the minimum of a PodGroup."""
    if key.api is GroupApi.NATIVE:
        return _native(key, objects.spec(group))

    found = objects.spec(group).get("minMember")
    if found is None and key.api is GroupApi.VOLCANO:
        return GroupStanding(1)

    return _checked(key, "spec.minMember", found)


def _native(key: GangKey, spec: Object) -> GroupStanding:
    policy = spec.get("schedulingPolicy") or {}
    if "gang" in policy:
        found = (policy["gang"] or {}).get("minCount")
        return _checked(key, "spec.schedulingPolicy.gang.minCount", found)

    if "basic" in policy:
        return GroupStanding(NO_GANG)

    known = ", ".join(sorted(policy)) or "none"
    why = f"PodGroup {key.name} has a schedulingPolicy that vnode does not know ({known})"
    return GroupStanding(problem=f"{why}: write gang or basic")


def _checked(key: GangKey, field: str, found: Any) -> GroupStanding:
    if isinstance(found, int) and not isinstance(found, bool) and found >= 1:
        return GroupStanding(found)

    why = f"PodGroup {key.name} of {key.api.value} has {field}: {found}"
    return GroupStanding(problem=f"{why}: write how many pods start together, 1 or more")


def missing(key: GangKey, *, is_served: bool) -> GroupStanding:
    """Return the standing of a group that is not there."""
    if is_served:
        why = f"PodGroup {key.name} of {key.api.value} does not exist in namespace {key.namespace}"
        return GroupStanding(problem=f"{why}: create it, or the pod without its name")

    why = f"the pod names PodGroup {key.name}, and this cluster serves none of {key.api.value}"
    return GroupStanding(problem=f"{why} that vnode knows: install its CRD, or name no group")
