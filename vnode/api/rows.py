"""Says what a cluster has free as rows: numbers of nodes that are alike. Pure.

Sums over all nodes, and the most on any one node of each resource by itself, do not say whether
eight devices are free on one node, beside the CPU that a pod of eight needs. Rows do. A target's
agent builds them (`vnode.nodes.row_building`) and writes them into its ClusterSummary
(`rows_text`); its sources ask them which shapes of pods fit.

Amounts are rounded down, so that a row stands for many nodes. `free` is what each of its nodes has
at least, `most` what it has at most: the first never promises what is not there, by the second no
node is given up that could do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from vnode.api import resources, taints
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.shape import Shape

MODEL_LABELS: Final = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "amd.com/gpu.product-name",
    "gpu.intel.com/product",
    "node.kubernetes.io/npu.chip.name",
    "accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/class",
)
"""The labels by which vendors and clouds name the model of a node's accelerators."""

_MOST_COMPARED: Final = 32
_MOST_ESTIMATES: Final = 256


@dataclass(frozen=True, slots=True)
class RowOfNodes:
    """Nodes with equal amounts free."""

    count: int
    free: Resources
    most: Resources

    def holds(self, shape: Shape) -> int:
        """Return how many pods of a shape fit on one of the nodes, at least."""
        return resources.times(shape.wanted, self.free) or 0

    def about_free(self, name: str) -> int:
        """Return about how much of a resource each of the nodes has free."""
        return (self.free.get(name, 0) + self.most.get(name, 0)) // 2

    def about(self, shape: Shape) -> int:
        """Return how many pods of a shape fit on one of the nodes, by the middle of its bounds."""
        free, most = self.free, self.most
        counts = (
            (free.get(name, 0) + most.get(name, 0)) // (2 * amount)
            for name, amount in shape.wanted.items()
        )
        return min(counts, default=0)


@dataclass(frozen=True, slots=True)
class AlikeNodes:
    """Nodes with equal labels, of those that tell models apart, and equal taints, as rows."""

    labels: Mapping[str, str]
    taints: tuple[Object, ...]
    """Those that keep pods away."""
    rows: tuple[RowOfNodes, ...]
    largest: Resources = field(init=False)
    """For each resource, the most that any one of the nodes may have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", resources.largest(row.most for row in self.rows))

    @property
    def is_plain(self) -> bool:
        """Whether any pod may be there that names no label."""
        return not self.labels and not self.taints

    def takes(self, shape: Shape, known: Collection[str]) -> bool:
        """Tell whether a pod may be there by its constraints; `known` labels are told of nodes."""
        return shape.matches(self.labels, known) and shape.tolerates(self.taints)

    def could_hold(self, wanted: Resources) -> bool:
        """Tell whether one of the nodes may have all that is wanted."""
        if _lacks(wanted, self.largest):
            return False

        for row in self.rows:  # noqa: SIM110 - hot; half the time of any()
            if not _lacks(wanted, row.most):
                return True

        return False


@dataclass(frozen=True, slots=True)
class Rows:
    """All nodes of a cluster that are ready and schedulable."""

    keys: tuple[str, ...]
    """The labels that are told of nodes; one of these that a node is not said to have, it lacks."""
    resources: frozenset[str]
    """The resources that are told of nodes."""
    alike: tuple[AlikeNodes, ...]
    nodes: int
    """How many there are, listed or not."""
    complete: bool
    """All of them, with all of their resources, are listed."""
    totals: Mapping[str, Resources] = field(default_factory=dict)
    """By model, the devices that nodes have in all; those of which it is not told are absent."""
    is_plain: bool = field(init=False)
    """No node has a label or a taint that is told."""
    has_devices: bool = field(init=False)
    """Nodes have extended resources, some or none of them free."""
    _estimates: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_plain", all(alike.is_plain for alike in self.alike))
        devices = any(map(resources.is_extended, self.resources))
        object.__setattr__(self, "has_devices", devices)

    def may_hold(self, shape: Shape) -> Iterator[AlikeNodes]:
        """Yield the nodes on which a pod may be by its constraints, whatever they have free."""
        for alike in self.alike:
            if alike.takes(shape, self.keys):
                yield alike

    def fit(self, shape: Shape) -> int:
        """Return how many pods of a shape fit, at least."""
        return sum(
            row.count * row.holds(shape) for alike in self.may_hold(shape) for row in alike.rows
        )

    def estimate(self, shape: Shape) -> int:
        """Return about how many pods of a shape fit: what is rounded counts by its middle.

        So many small pods are not taken for none where amounts are told by large units.
        """
        known = self._estimates.get(shape.key)
        if known is None:
            if len(self._estimates) >= _MOST_ESTIMATES:
                self._estimates.clear()

            known = self._estimates[shape.key] = sum(
                row.count * row.about(shape) for alike in self.may_hold(shape) for row in alike.rows
            )

        return known

    def fits(self, shape: Shape, pods: int) -> bool:
        """Tell whether that many pods of a shape fit at the same time."""
        return self.fit(shape) >= pods

    def largest(self, shape: Shape) -> RowOfNodes | None:
        """Return the row of the largest nodes for pods of a shape: devices count before the rest.

        None if there is no node on which a pod of it may be.
        """
        return _largest(self.may_hold(shape), shape)

    def histogram(self, resource: str) -> dict[str, dict[int, int]]:
        """Return how many nodes have how much free of a resource, by model; "" is none."""
        found: dict[str, Counter[int]] = {}
        for alike in self.alike:
            for row in alike.rows:
                if resource in row.free:
                    amounts = found.setdefault(model_of(alike.labels, self.keys), Counter())
                    amounts[row.free[resource]] += row.count

        return {model: dict(amounts) for model, amounts in found.items()}

    def refusals(self, shape: Shape) -> tuple[str, ...]:
        """Return why no node can hold a pod, in kube-scheduler's words; () if one may.

        Resources that are not told of nodes are left out of account, and so is the whole question
        if some nodes are not listed.
        """
        if not self.complete:
            return ()

        wanted = shape.wanted
        if not wanted.keys() <= self.resources:
            wanted = {n: amount for n, amount in wanted.items() if n in self.resources}

        for alike in self.alike:
            if alike.could_hold(wanted) and alike.takes(shape, self.keys):
                return ()

        return self._reasons(shape, wanted)

    def _reasons(self, shape: Shape, wanted: Resources) -> tuple[str, ...]:
        chosen = [alike for alike in self.alike if shape.matches(alike.labels, self.keys)]
        if not chosen:
            return (self._mismatch(shape),) if self.alike else ()

        if refused := next((alike for alike in chosen if alike.could_hold(wanted)), None):
            taint = shape.untolerated(refused.taints) or {}
            return (f"node(s) had untolerated taint {taints.describe(taint)}",)

        most = resources.largest(alike.largest for alike in chosen)
        if not _lacks(wanted, most):  # each is there, but not together
            row = _largest(chosen, shape)
            most = row.most if row else {}

        return self._insufficient(shape, wanted, most)

    def _mismatch(self, shape: Shape) -> str:
        """Name the label that no node has, if that is why none matches."""
        for text, matches in shape.conditions(self.keys):
            if not any(matches(alike.labels) for alike in self.alike):
                return f"no node has {text}"

        return "node(s) didn't match Pod's node affinity/selector"

    def _insufficient(
        self, shape: Shape, wanted: Resources, most: Mapping[str, int]
    ) -> tuple[str, ...]:
        """Tell what the largest nodes lack, which have so much, and how many devices they have."""
        where, reasons = shape.chosen(self.keys), []
        for name in resources.insufficient(wanted, most):
            if name == resources.PODS:
                reasons.append("Too many pods")
                continue

            # Other amounts change with each pod, and each new text is written to all that wait.
            devices = f" (the largest has {most.get(name, 0)} free)"
            size = devices if resources.is_extended(name) else ""
            reasons.append(f"Insufficient {name} on any one node{where}{size}")

        return tuple(reasons)

    def grew_from(self, former: Rows | None) -> bool:
        """Tell whether a pod may fit now that did not by the former rows."""
        if former is self:
            return False

        if former is None or (former.complete and not self.complete):
            return True

        present = {(str(alike.labels), str(alike.taints)): alike.rows for alike in former.alike}
        compared = 0
        for alike in self.alike:
            before = present.get((str(alike.labels), str(alike.taints)), ())
            for row in alike.rows:
                if any(row.most == other.most for other in before):
                    continue

                compared += 1
                if compared > _MOST_COMPARED:
                    return True

                if not any(_within(row.most, other.most) for other in before):
                    return True

        return False


def model_of(labels: Mapping[str, str], keys: Iterable[str]) -> str:
    """Return the model that a node's labels name: that of the first key; "" if none does."""
    return next((labels[key] for key in keys if key in labels), "")


def _largest(nodes: Iterable[AlikeNodes], shape: Shape) -> RowOfNodes | None:
    rows = [row for alike in nodes for row in alike.rows]
    for name in shape.order:
        most = max((row.free.get(name, 0) for row in rows), default=0)
        rows = [row for row in rows if row.free.get(name, 0) == most]
        if len(rows) == 1:
            break

    return rows[0] if rows else None


def _lacks(wanted: Resources, most: Mapping[str, int]) -> bool:
    for name, amount in wanted.items():  # noqa: SIM110 - hot; half the time of any()
        if amount > most.get(name, 0):
            return True

    return False


def _within(left: Mapping[str, int], right: Mapping[str, int]) -> bool:
    return all(amount <= right.get(name, 0) for name, amount in left.items())
