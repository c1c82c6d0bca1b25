"""Filter and Score by the free resources of targets.

What a target reports as free (on all its nodes together, and at most on any single one) is
believed, less what was promised to other pods since then. Its rows (`vnode.api.rows`) then say
whether all that a pod asks for is on one node that it may use, by labels of models and by taints.
For a target that reports nothing, the upper bound is its allocatable less what our own proxies
there request. Of a target without either nothing is assumed, nor of an extended resource that no
target lists: the target's own scheduler decides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from vnode.api import keys, node_pools, objects, resources
from vnode.api import shape as shapes
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.shape import Shape
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import (
    MAX_SCORE,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    ScorePlugin,
)
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
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


@dataclass(slots=True)
class _Asked:
    """What a pod asks of a target, as far as it counts."""

    requests: Resources
    has_devices: bool
    bare: Shape
    """Without its constraints."""
    shape: Shape | None = None
    """With them, once they are read; None if they are not known."""
    is_read: bool = False


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, ScorePlugin):
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

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Leave out of account what the configuration says, and what no target lists.

        A pod that is bound without asking its target goes by what is known. One that requests too
        many resources is rejected.
        """
        requests = state.requests(pod)
        if len(requests) > resources.MOST:
            return status.unresolvable(
                f"the pod requests over {resources.MOST} resources: use {resources.MOST} at most"
            )

        judged = {name: a for name, a in requests.items() if name not in self._ignored}
        devices = [name for name in judged if resources.is_extended(name)]
        if devices and state.asks and keys.NO_RESERVATION not in objects.annotations(pod):
            for name in devices:
                if not any(node.lists(name) for node in snapshot):
                    del judged[name]

        state.write(self.NAME, _Asked(judged, bool(devices), Shape(judged)))
        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Fit the pod into the sum, each request into some node, and all of them into one node.

        Where that fails, note whether a node pool may grow for it.
        """
        free = node.known_free()
        if free is None:
            return SUCCESS

        asked: _Asked = state.read(self.NAME)
        requests = asked.requests
        if unlisted := node.virtual.unlisted:
            requests = {name: a for name, a in requests.items() if name not in unlisted}

        found = self._fit(asked, pod, node, requests, free)
        if not found.is_success and node.virtual.pools:
            shape = self._shape(asked, pod) or asked.bare
            if self.handle.is_overridden(pod, node.name):
                shape = asked.bare

            wanted = dataclasses.replace(shape, requests=requests)
            if node_pools.may_grow(node.virtual.pools, node.rows, wanted):
                state.grows.add(node.name)

        return found

    def _fit(
        self,
        asked: _Asked,
        pod: Object,
        node: VirtualNodeInfo,
        requests: Resources,
        free: Resources,
    ) -> Status:
        short = self._short(requests, free)
        if short:
            return status.unschedulable(*map(_reason, short))

        short = [] if node.largest is None else self._short(requests, node.largest)
        reasons = self._refusals(asked, pod, node, requests) if node.rows else ()
        if not reasons and short:
            reasons = tuple(f"{_reason(name)} on any one node" for name in short)

        return status.unschedulable(*reasons) if reasons else SUCCESS

    def _refusals(
        self, asked: _Asked, pod: Object, node: VirtualNodeInfo, requests: Resources
    ) -> tuple[str, ...]:
        """Return why none of the target's nodes can take the pod by its rows."""
        rows = node.rows
        if rows is None:
            return ()

        # The constraints of a pod take time to read, and seldom matter without devices.
        shape: Shape | None = asked.bare
        if asked.has_devices or not rows.is_plain:
            shape = self._shape(asked, pod)

        if shape is None:
            return ()

        if requests is not asked.requests:
            shape = dataclasses.replace(shape, requests=requests)

        refusals = rows.refusals(shape)
        return () if refusals and self.handle.is_overridden(pod, node.name) else refusals

    def _shape(self, asked: _Asked, pod: Object) -> Shape | None:
        """Return what the pod's delegate asks of a node; None if that is not known."""
        if not asked.is_read:
            asked.is_read = True
            asked.shape = shapes.read(asked.requests, self.handle.constraints(pod))

        return asked.shape

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

        return [n for n in short if n != resources.PODS or n in free]


def _reason(resource: str) -> str:
    return "Too many pods" if resource == resources.PODS else f"Insufficient {resource}"


def _identity(part: float) -> float:
    return part


def _complement(part: float) -> float:
    return 1 - part
