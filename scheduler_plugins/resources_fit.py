"""Filter and Score by the free resources of targets.

What a target reports as free (on all its nodes together, and at most on any single one) is
believed, less what was promised to other pods since then. For a target that reports nothing, the
upper bound is its allocatable less what our own proxies there request. Of a target without either
nothing is assumed: its own scheduler decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from vnode.api import resources
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import MAX_SCORE, FilterPlugin, Handle, ScorePlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status


class ResourceWeight(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much one resource counts in the score."""

    name: str
    weight: int = 1


CPU_AND_MEMORY: Final = (ResourceWeight(resources.CPU), ResourceWeight(resources.MEMORY))


class ScoringStrategy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """LeastAllocated spreads load over targets, MostAllocated fills one after the other."""

    type: Literal["LeastAllocated", "MostAllocated"] = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY


class ResourcesFitArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments of NodeResourcesFit."""

    scoring_strategy: ScoringStrategy = ScoringStrategy()
    ignored_resources: tuple[str, ...] = ()
    """Resources that Filter ignores."""


def fractions_used(
    node: VirtualNodeInfo, requests: Resources, weights: tuple[ResourceWeight, ...]
) -> list[tuple[float, int]]:
    """Return (fraction 0..1 in use with the pod, weight) of each resource that the node has."""
    free, allocatable = node.known_free(), node.virtual.allocatable
    if free is None or not allocatable:
        return []

    used: list[tuple[float, int]] = []
    for resource in weights:
        if capacity := allocatable.get(resource.name, 0):
            left = free.get(resource.name, 0) - requests.get(resource.name, 0)
            used.append((1 - min(max(left / capacity, 0.0), 1.0), resource.weight))

    return used


class NodeResourcesFit(FilterPlugin, ScorePlugin):
    """Keeps pods from targets that are full; CandidateProbe may try such a target all the same."""

    NAME = "NodeResourcesFit"
    IS_ESTIMATE = True
    Args = ResourcesFitArgs

    def __init__(self, args: ResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        strategy = args.scoring_strategy
        self._weights = strategy.resources
        self._ignored = frozenset(args.ignored_resources)
        self._rate: Callable[[float], float] = (
            _identity if strategy.type == "MostAllocated" else _complement
        )

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which a target may have more free."""
        kinds = (
            EventKind.NODE_ADD,
            EventKind.NODE_ALLOCATABLE,
            EventKind.TARGET_FREE,
            EventKind.POD_DELETE,
        )
        return [ClusterEventWithHint(kind) for kind in kinds]

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Fit the pod into the sum, and each of its requests into some single node."""
        free = node.known_free()
        if free is None:
            return SUCCESS

        requests = state.requests(pod)
        short = self._short(requests, free)
        if short:
            return status.unschedulable(*map(_reason, short))

        if node.largest is None:
            return SUCCESS

        short = self._short(requests, node.largest)
        return (
            status.unschedulable(*(f"{_reason(n)} on any one node" for n in short))
            if short
            else SUCCESS
        )

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return the weighted mean over the resources; 0 for a target of unknown size."""
        used = fractions_used(node, state.requests(pod), self._weights)
        total = sum(weight for _, weight in used)
        if not total:
            return 0

        return round(MAX_SCORE * sum(self._rate(part) * weight for part, weight in used) / total)

    def _short(self, requests: Resources, free: Resources) -> list[str]:
        short = resources.insufficient(requests, free)
        if not short:
            return short

        return [n for n in short if n not in self._ignored and (n != resources.PODS or n in free)]


def _reason(resource: str) -> str:
    return "Too many pods" if resource == resources.PODS else f"Insufficient {resource}"


def _identity(part: float) -> float:
    return part


def _complement(part: float) -> float:
    return 1 - part
