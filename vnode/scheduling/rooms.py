"""Estimates how many more pods like a given one could start in each cluster.

Weights by free capacity and moves go by it. What a cluster has free in all, less what was promised,
is the upper bound; where it tells of its nodes by rows, only what is together on one that the pod
may use counts. As in Filter, an extended resource that no cluster lists is left out of account.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vnode.api import resources
from vnode.api import shape as shapes
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.shape import Shape
from vnode.scheduling.plugin import Handle
from vnode.scheduling.snapshot import VirtualNodeInfo

_UNBOUNDED: Final = 1000  # pods, if nothing that they request is told


def rooms(
    pod: Object, requests: Resources, nodes: Sequence[VirtualNodeInfo], handle: Handle
) -> dict[str, int | None]:
    """Return how many such pods each cluster has room for; None if it does not say."""
    wanted = {
        name: amount
        for name, amount in requests.items()
        if amount > 0 and any(node.lists(name) for node in nodes)
    }
    shape = _shape(pod, wanted, nodes, handle)
    found: dict[str, int | None] = {}
    for node in nodes:
        free, rows = node.known_free(), node.rows
        if free is None:
            found[node.name] = None
            continue

        unlisted = node.virtual.unlisted
        is_usual = not unlisted and resources.PODS in free
        counted = wanted if is_usual else _counted(wanted, free, unlisted)
        found[node.name] = by_sums = _by_sums(counted, free)
        if shape is None or rows is None or not rows.complete or not by_sums or not counted:
            continue

        by_rows = rows.estimate(shape.only(counted.keys() & rows.resources))
        # What an override policy changes is for the target's scheduler to say.
        if by_rows < by_sums and not handle.is_overridden(pod, node.name):
            found[node.name] = by_rows

    return found


def _shape(
    pod: Object, wanted: Resources, nodes: Sequence[VirtualNodeInfo], handle: Handle
) -> Shape | None:
    """Return what the pod's delegate asks of a node; None if that is not known.

    Its constraints take time to read, and seldom matter without devices.
    """
    has_devices = any(map(resources.is_extended, wanted))
    if has_devices or not all(node.rows is None or node.rows.is_plain for node in nodes):
        return shapes.read(wanted, handle.constraints(pod))

    return Shape(wanted)


def _counted(wanted: Resources, free: Resources, unlisted: frozenset[str]) -> Resources:
    return {
        name: amount
        for name, amount in wanted.items()
        if name not in unlisted and (name != resources.PODS or name in free)
    }


def _by_sums(wanted: Resources, free: Resources) -> int:
    count = resources.times(wanted, free)
    return _UNBOUNDED if count is None else max(0, count)
