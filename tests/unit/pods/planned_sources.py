"""Targets with room, and policies with weights, for tests of placement."""

from __future__ import annotations

from tests.unit.pods.policies import Room, entry, spread
from vnode.api import keys, objects


def clouds(clock, *rooms):
    """Make targets c1, c2 and so on, with room for so many pods each."""
    return [Room(f"c{number}", clock, places) for number, places in enumerate(rooms, 1)]


def weighted(targets, weights, **fields):
    """Make a policy with these weights, at least two pods in each target."""
    share = {"minimum": 2, **fields.pop("each", {})}
    return spread(
        *(entry(t.node, weight=w, **share) for t, w in zip(targets, weights, strict=True)), **fields
    )


def message(source, pod):
    """Return what the pod's condition says."""
    condition = objects.condition(source.pod(pod), "PodScheduled")
    return (condition or {}).get("message")


def written(source, pod):
    """Return why the pod has its place, as its binding has it."""
    return objects.annotations(source.pod(pod)).get(keys.PLACED)
