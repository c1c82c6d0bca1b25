"""Builds virtual nodes and pods of what a scheduling test names, and a clock that stands still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from vnode.scheduling.cache import Cache
from vnode.scheduling.snapshot import VirtualNode


class ManualClock:
    """Stands still until a test moves it; `sleep` is never needed here."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nothing should sleep for {seconds} s")


def pod(
    uid: str,
    *,
    namespace: str = "default",
    owner: str = "",
    labels: dict[str, str] | None = None,
    cpu: str = "",
    node: str = "",
    phase: str = "Pending",
    **spec: Any,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": uid, "namespace": namespace, "uid": uid}
    if labels:
        metadata["labels"] = labels

    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]

    if node:
        spec["nodeName"] = node

    if cpu:
        spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]

    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def virtual_node(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    cordoned: bool = False,
    **fields: Any,
) -> VirtualNode:
    node = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints or [], "unschedulable": cordoned},
    }
    return VirtualNode(name, node, fields.pop("target", ("default", name)), **fields)


def cache_of(*names: str) -> Cache:
    """Build a cache with nodes of these names."""
    cache = Cache()
    for name in names:
        cache.update_node(virtual_node(name))

    return cache
