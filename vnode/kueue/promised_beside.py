"""Sums up what other workloads were promised, for the answer to one.

They may be ten thousand, of one namespace, each of a shape of its own: so the sum is made one
workload after the other, with others' work in between, and few shapes of it are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from vnode.api import objects, packing, resources
from vnode.api.limit_ranges import Nanos
from vnode.api.packing import PodsOfShape
from vnode.kueue.promised_room import PromisedPart, PromisedPodSet

MOST_APART: Final = 500
"""Shapes of one target that are kept while it is summed up; `packing.together` makes few of so
many, which takes milliseconds."""

Demand = Callable[[str, PromisedPodSet, int], Mapping[str, Nanos]]
"""(node, pod set, count) -> what so many of its pods take of the quotas there, by their names."""


@dataclass(slots=True)
class PromisedThere:
    """What of one target is promised."""

    pods: list[PodsOfShape] = field(default_factory=list)
    demand: dict[str, Nanos] = field(default_factory=dict)
    """Of the pods of the namespaces asked about: by quota."""
    shapes: dict[str, PodsOfShape] = field(default_factory=dict)
    """By key; none once they are `pods`."""

    def add(self, pod_set: PromisedPodSet, count: int) -> None:
        """Count pods; of too many shapes, some are alike from then on."""
        _count(self.shapes, PodsOfShape(pod_set.shape, count))
        if len(self.shapes) >= MOST_APART:
            pods, self.shapes = packing.together(self.shapes.values()), {}
            for each in pods:
                _count(self.shapes, each)

    def close(self) -> None:
        """Make few shapes of those that were counted."""
        self.pods, self.shapes = packing.together(self.shapes.values()), {}


class PromisedBeside:
    """The sums of all targets; `demand` is asked about the pods of `namespaces` alone."""

    def __init__(self, namespaces: Collection[str], demand: Demand) -> None:
        self._namespaces = namespaces
        self._demand = demand
        self._there: dict[str, PromisedThere] = {}
        self.awaited: set[str] = set()

    def steps(self, parts: Iterable[PromisedPart | None]) -> Iterator[None]:
        """Sum up, with others' work after each step."""
        for part in parts:
            for node, pod_set, count in part.left if part is not None else ():
                self._add(node, pod_set, count)

            self.awaited.update(part.awaited if part is not None else ())
            yield

        for there in self._there.values():
            there.close()
            yield

    def _add(self, node: str, pod_set: PromisedPodSet, count: int) -> None:
        there = self._there.setdefault(node, PromisedThere())
        there.add(pod_set, count)
        if objects.namespace(pod_set.pod) in self._namespaces:
            for quota, amounts in self._demand(node, pod_set, count).items():
                there.demand[quota] = resources.add(there.demand.get(quota, {}), amounts)

    def at(self, node: str) -> PromisedThere:
        """Return the sum of one target."""
        return self._there.get(node, PromisedThere())


def _count(shapes: dict[str, PodsOfShape], pods: PodsOfShape) -> None:
    known = shapes.get(pods.shape.key)
    before = known.count if known is not None else 0
    shapes[pods.shape.key] = PodsOfShape(pods.shape, before + pods.count)
