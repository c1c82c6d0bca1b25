"""Decides when a workload that was let in is told to retry, because its target is lost.

The answer holds its pods in that target, as Kueue's topology does: those that replace lost ones
would wait there until it is back. Told to retry, Kueue ends the workload as a whole, a Job by
suspending it, which counts no failure, and asks again; then the answer names another target. That
is done a moment before the first of its pods would be evicted by its tolerations, so that it stays
as long as its pods would, and none of them is replaced by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from vnode.api import objects, tolerance
from vnode.api.objects import Object

LEAST: Final = 30.0
"""Seconds for which a target must have been lost in any case: most outages are shorter."""
BEFORE: Final = 10.0
"""Seconds before the first eviction."""
LOOK_AGAIN: Final = 30.0
"""Seconds after which to look again while pods stay without end: a policy may evict them."""
_UNKNOWN: Final = 2.0
"""Seconds after which to look again while nobody knows whether the target is lost still."""


class KnownLoss(Protocol):
    """A target that was lost when it was last looked at."""

    @property
    def seconds(self) -> float:
        """For how long."""

    @property
    def is_known(self) -> bool:
        """Whether it is so now."""


class Losses(Protocol):
    """What is known of lost targets, by virtual node."""

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the node of each that is lost or back."""

    def loss(self, node: str) -> KnownLoss | None:
        """Return for how long the target of a node has been lost; None if it has not."""


def stay(pods: Iterable[Object], node: str) -> float | None:
    """Return for how many seconds a workload with these pods stays on a node that is lost.

    None while one of them stays without end; it is for a placement policy to evict it, if any.
    """
    there = [pod for pod in pods if objects.node_name(pod) == node and not _is_over(pod)]
    seconds = [tolerance.of_lost_node(pod) for pod in there]
    known = [each for each in seconds if each is not None]
    if len(known) < len(seconds):
        return None

    return max(LEAST, min(known, default=0.0) - BEFORE)


def _is_over(pod: Object) -> bool:
    return objects.is_terminating(pod) or objects.is_finished(pod)


class LostWorkloads:
    """Tells which workloads are in lost targets; `on_loss` is called when one is lost."""

    def __init__(self, losses: Losses, on_loss: Callable[[], None]) -> None:
        self._losses = losses
        self._on_loss = on_loss
        self._lost: set[str] = set()  # nodes that are lost, each told by `on_loss` once

    def watch(self) -> None:
        """Follow the targets from now on."""
        self._losses.subscribe(self._look_at)

    def _look_at(self, node: str) -> None:
        if self._losses.loss(node) is None:
            self._lost.discard(node)
        elif node not in self._lost:
            self._lost.add(node)
            self._on_loss()

    def among(self, held: Collection[str], pods: Iterable[Object]) -> list[str]:
        """Return which nodes are lost of those that a workload is held on, or has pods on.

        Kueue may have written already that pods which replace others go elsewhere.
        """
        if not self._lost:
            return []

        present = {objects.node_name(pod) for pod in pods if not _is_over(pod)}
        return sorted(self._lost & (present | set(held)))

    def left(self, node: str, pods: Iterable[Object]) -> float | None:
        """Return after how many seconds to look again; 0 if the workload is to go, None if not."""
        loss = self._losses.loss(node)
        if loss is None:
            return None

        seconds = stay(pods, node)
        if seconds is None:
            return LOOK_AGAIN

        if (left := seconds - loss.seconds) > 0:
            return min(left, LOOK_AGAIN)

        return 0.0 if loss.is_known else _UNKNOWN
