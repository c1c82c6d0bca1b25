"""Reads of a pod's affinity whom it concerns: which pods may attract it, or keep it away.

Long terms take milliseconds to compile, and pods that wait are compared with each that comes or
goes. So the terms are compiled once, in the attempt of the pod that has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vnode.api import objects, pod_terms
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.pod_terms import PodTerm
from vnode.scheduling.events import EventReading


@dataclass(frozen=True, slots=True)
class AffinityReading(EventReading):
    """Which pods the required terms of a pod select, and which it keeps away by these."""

    namespace: str
    labels: Mapping[str, str]
    wanted: tuple[PodTerm, ...] | None
    """None if they cannot be read: no other pod changes that."""
    repelled: tuple[PodTerm, ...]
    cost: int

    def is_helped_by(self, other: AffinityReading) -> bool:
        """Tell whether terms of one select the other."""
        if self.wanted is None:
            return False

        for term in self.wanted:
            if term.matches(other.namespace, other.labels):
                return True

        return any(term.matches(self.namespace, self.labels) for term in other.repelled)


def read(pod: Object) -> AffinityReading:
    """Read the required terms of a pod, ready to be compared."""
    wanted: tuple[PodTerm, ...] | None
    try:
        repelled = pod_terms.required(pod, pod_terms.ANTI_AFFINITY)
    except ConfigError:
        wanted, repelled = None, ()
    else:
        wanted = _with_affinity(pod, repelled)

    for term in wanted or repelled:
        if term.selector is not None:
            term.selector.prepare()

    cost = sum(term.cost for term in wanted or ())
    return AffinityReading(objects.namespace(pod), objects.labels(pod), wanted, repelled, cost)


def _with_affinity(pod: Object, far: tuple[PodTerm, ...]) -> tuple[PodTerm, ...] | None:
    try:
        return (*pod_terms.required(pod, pod_terms.AFFINITY), *far)
    except ConfigError:
        return None
