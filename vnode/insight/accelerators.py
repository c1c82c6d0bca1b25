"""Says which accelerators each target has, how many are free, and how many pods of them fit. Pure.

A target tells it of its nodes by rows (`vnode.api.rows`): by model, and how many are free on one
node. One with Admiralty, or an older vnode, says sums at most; of one that says nothing there is
what its virtual node shows. Every extended resource counts as an accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from vnode.api import keys, node_pools, objects, resources, rows
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.insight import accounts
from vnode.scheduling import reported

SIZES: Final = (1, 2, 4, 8)
"""Devices of the pods of which it is said how many fit."""
UNKNOWN: Final = "<unknown>"
AT_MOST: Final = "<="
AT_LEAST: Final = ">="


@dataclass(frozen=True, slots=True)
class AcceleratorUse:
    """The devices of one model and resource in one target; None is not known."""

    target: str
    resource: str
    model: str
    """"" if nodes do not name it."""
    total: int | None = None
    free: int | None = None
    largest: int | None = None
    """The most that one node has free."""
    fits: tuple[int, ...] | None = None
    """Pods of each of the `SIZES`, by devices alone: each with all of its devices on one node."""
    growth: int = 0
    """Devices that node pools may add."""
    bound: str = ""
    """`AT_MOST` or `AT_LEAST` if that is all that is known of the numbers but the total."""

    def text(self, number: int | None) -> str:
        """Format one of the numbers that depend on what is free."""
        return UNKNOWN if number is None else f"{self.bound}{number}"


def of_target(
    target: Object, node: Object | None, summary: Object | None, *, runs_vnode: bool
) -> list[AcceleratorUse]:
    """Return what a Target has, by resource and model.

    `node` is its virtual node, and `summary` its ClusterSummary, of which only what Admiralty
    writes counts where vnode does not run any more.
    """
    said = summary if runs_vnode else None
    offered = (summary or {}).get("allocatable") or objects.status(node or {}).get("allocatable")
    totals = {n: a for n, a in accounts.amounts(offered).items() if resources.is_extended(n)}
    key = objects.key(target)
    found = reported.read_rows(said)
    if found is not None:
        uses = _by_rows(key, found, totals)
    else:
        labels = objects.labels(node or {}) | objects.labels(summary or {})
        model = rows.model_of(labels, rows.MODEL_LABELS)
        uses = _by_sums(key, model, said, totals)

    growth = _growth(objects.annotations(target).get(keys.NODE_POOLS, ""), found)
    known = {
        (use.resource, use.model): replace(use, growth=growth.pop((use.resource, use.model), 0))
        for use in uses
    }
    for resource, model in growth:
        known[resource, model] = AcceleratorUse(
            key, resource, model, 0, 0, 0, (0,) * len(SIZES), growth[resource, model]
        )

    return [known[place] for place in sorted(known)]


def _growth(text: str, found: Rows | None) -> dict[tuple[str, str], int]:
    """Return how many devices pools may add, by resource and model."""
    try:
        pools = node_pools.parse(text)
    except ConfigError:
        return {}

    growth: dict[tuple[str, str], int] = {}
    names = found.keys if found else rows.MODEL_LABELS
    for pool in pools:
        nodes, model = pool.left(pools, found), rows.model_of(pool.labels, names)
        for resource, amount in pool.allocatable.items():
            if resources.is_extended(resource) and nodes:
                growth[resource, model] = growth.get((resource, model), 0) + amount * nodes

    return growth


def _by_rows(target: str, found: Rows, totals: Resources) -> Iterator[AcceleratorUse]:
    for resource in sorted(totals.keys() | filter(resources.is_extended, found.resources)):
        free = found.histogram(resource)
        of_models = {model: t[resource] for model, t in found.totals.items() if resource in t}
        models = of_models.keys() | {model for model, amounts in free.items() if any(amounts)}
        for model in sorted(models) or [""]:
            nodes = free.get(model, {})
            whole = totals.get(resource) if len(models) < 2 else None
            yield AcceleratorUse(
                target,
                resource,
                model,
                of_models.get(model, whole),
                sum(amount * count for amount, count in nodes.items()),
                max(nodes, default=0),
                tuple(_fits(nodes, size) for size in SIZES),
                bound="" if found.complete else AT_LEAST,
            )


def _fits(nodes: Mapping[int, int], size: int) -> int:
    return sum(amount // size * count for amount, count in nodes.items())


def _by_sums(
    target: str, model: str, summary: Object | None, totals: Resources
) -> Iterator[AcceleratorUse]:
    free, largest = reported.read_free(summary)
    for resource, total in sorted(totals.items()):
        if free is None or largest is None:
            yield AcceleratorUse(target, resource, model, total)
            continue

        left, most = free.get(resource, 0), largest.get(resource, 0)
        fits = tuple(left // size if most >= size else 0 for size in SIZES)
        yield AcceleratorUse(target, resource, model, total, left, most, fits, bound=AT_MOST)
