"""Pods of gangs, for tests."""

from __future__ import annotations

from typing import Any

from vnode.api import keys
from vnode.api.objects import Object
from vnode.gangs.pod_groups import GroupStanding
from vnode.gangs.table import Gangs


def pod(name: str, *, node: str = "", **metadata: Any) -> Object:
    """Return a pod; its UID is its name."""
    spec = metadata.pop("spec", {})
    status = metadata.pop("status", {})
    head = {"name": name, "namespace": "default", "uid": name, **metadata}
    return {
        "metadata": head,
        "spec": {**spec, **({"nodeName": node} if node else {})},
        "status": status,
    }


def member(name: str, minimum: int | None = 2, *, gang: str = "g", **rest: Any) -> Object:
    """Return a pod of a gang by annotations."""
    annotations = {keys.GANG: gang}
    if minimum is not None:
        annotations[keys.GANG_MINIMUM] = str(minimum)

    return pod(name, annotations={**annotations, **rest.pop("annotations", {})}, **rest)


def table(*pods: Object) -> Gangs:
    """Return the table of gangs of some pods."""
    gangs = Gangs(lambda _key: GroupStanding())
    for each in pods:
        gangs.on_pod(None, each)

    return gangs
