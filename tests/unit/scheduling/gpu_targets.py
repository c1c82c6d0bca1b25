"""Builds targets whose nodes have GPUs, pods that want some, and a framework to schedule them."""

from __future__ import annotations

from typing import Any

from scheduler_plugins import defaults
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.api import objects, resources, rows_text
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import MODEL_LABELS, Rows
from vnode.nodes import row_building
from vnode.scheduling import node_rows, registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.config import Profile
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle
from vnode.scheduling.registry import Registry

MODEL, GPU = "nvidia.com/gpu.product", "nvidia.com/gpu"


def make_framework(**handle: Any) -> Framework:
    """Build the default framework; `handle` are further fields of its Handle."""
    made = Handle(namespace_refusal=any_namespace, **({"clock": ManualClock()} | handle))
    return registry.build(Profile(), Registry(defaults.PLUGINS), defaults.WEIGHTS, made)


def without_affinity(spec: Object) -> Object:
    """Return the spec of a proxy, whose constraints choose no virtual node here."""
    return {k: v for k, v in spec.items() if k not in ("nodeSelector", "tolerations")}


def gpu_pod(gpus: int, cpu: str = "1", **spec: Any) -> Object:
    made = pod("p", **spec)
    requests = {"cpu": cpu, **({GPU: str(gpus)} if gpus else {})}
    made["spec"]["containers"] = [{"name": "c", "resources": {"requests": requests}}]
    return made


def reported(
    *nodes: tuple[int, int, str], taint: str = "", pods: int = 10
) -> tuple[Resources, Resources, Rows]:
    """Return what is free on nodes of these free GPUs, free CPUs and models: in all, at most, rows.

    Each has room for so many `pods`.
    """
    made, free = [], {}
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    for place, (gpus, cpus, model) in enumerate(nodes):
        labels = {MODEL: model} if model else {}
        node = {"metadata": {"name": f"n{place}", "labels": labels}, "spec": {"taints": taints}}
        made.append(node)
        free[f"n{place}"] = {"cpu": cpus * 1000, "pods": pods, **({GPU: gpus} if model else {})}

    rows = rows_text.decode(row_building.build(made, free, MODEL_LABELS))
    assert rows
    total: Resources = {}
    for amounts in free.values():
        total = resources.add(total, amounts)

    return total, resources.largest(free.values()), rows


def add_target(
    cache: Cache, name: str, *nodes: tuple[int, int, str], taint: str = "", **virtual: Any
) -> None:
    """Add a target with nodes of these free GPUs, free CPUs and models."""
    total, largest, rows = reported(*nodes, taint=taint)
    cache.update_node(virtual_node(name, allocatable=total, **virtual))
    cache.update_free(name, total, largest, node_rows.of_rows(rows, largest), rows)


def reason(cache: Cache, candidate: Object, target: str = "t1", **handle: Any) -> str:
    """Return why a target does not pass, "" if it does; the pod is its own delegate."""
    proxy = {**candidate, "spec": without_affinity(objects.spec(candidate))}
    framework = make_framework(constraints=lambda _pod: objects.spec(candidate), **handle)
    found = framework.schedule(proxy, cache.snapshot()).statuses.get(target)
    return found.message if found else ""
