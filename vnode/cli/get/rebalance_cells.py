"""Fills the cells of Rebalances that depend on more than one field. Pure."""

from __future__ import annotations

from typing import Final

from vnode.api import enumeration, objects
from vnode.api.objects import Object

_NAMED: Final = 3  # workloads in one cell


def has_failed(obj: Object) -> bool:
    """Tell whether it ended with pods that could not be moved."""
    return objects.status(obj).get("phase") == "Failed"


def workloads(obj: Object) -> str:
    """Return whose pods it is for, in a few words."""
    spec = objects.spec(obj)
    if policy := spec.get("policy"):
        return f"placementpolicy/{policy}"

    named = [f"{str(each['kind']).lower()}/{each['name']}" for each in spec.get("workloads") or ()]
    return enumeration.some(named, _NAMED) or "all"
