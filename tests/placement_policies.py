"""PlacementPolicies on real API servers: made, and in force from then on; and costly ones."""

from __future__ import annotations

from typing import Any

from tests import kit
from vnode.api import kinds
from vnode.api.objects import Object
from vnode.kube.client import Client


async def create(source: Client, name: str, **spec: Any) -> None:
    """Create the policy of that name for pods whose label `app` is that; wait until it counts."""
    kind = kinds.PLACEMENT_POLICIES
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }
    await source.create(kind, body, "default")
    await kit.until_one(
        source, kind, name, "default", lambda obj: kit.has_condition(obj, "Accepted")
    )


async def delete(source: Client, name: str) -> None:
    await source.delete(kinds.PLACEMENT_POLICIES, name, "default")


_EXPRESSIONS, _VALUES, _LENGTH = 32, 100, 63  # the most that the schema of a policy allows


def costly(number: int) -> Object:
    """Build a policy that selects no pod, and is as costly to match as its schema allows.

    For pods with `costly_labels` all but one of its expressions hold.
    """
    expressions = [
        {"key": f"label-{n}", "operator": "NotIn", "values": _values(number, n)}
        for n in range(_EXPRESSIONS)
    ]
    expressions[number % _EXPRESSIONS]["operator"] = "In"
    return {
        "metadata": {"name": f"costly-{number}"},
        "spec": {"selector": {"matchExpressions": expressions}, "mode": "Spread", "priority": 0},
    }


def costly_labels(number: int) -> dict[str, str]:
    """Return labels of a pod's own."""
    return {f"label-{n}": f"pod-{number}" for n in range(_EXPRESSIONS)}


def _values(number: int, expression: int) -> list[str]:
    return [f"{number}-{expression}-{n}-".ljust(_LENGTH, "x") for n in range(_VALUES)]
