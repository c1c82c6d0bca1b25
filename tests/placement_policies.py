"""PlacementPolicies on real API servers: made, and in force from then on."""

from __future__ import annotations

from typing import Any

from tests import kit
from vnode.api import kinds
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
