"""Tells the pods of one revision of a workload from those of others, and plans them apart. Pure.

A Deployment that is rolled out has several ReplicaSets, of which one grows while the others shrink.
Each is planned as if the others were not there: it stands by the plan of its own number of pods all
the time, so that what is left in the end is the plan, whatever came between. Were old and new pods
counted together, the new ones would take the last seats of a larger workload, and the first ones
would go with the old pods.

Where `groupBy` makes several Deployments one workload, the pods of one are planned together with
those of the others, but only with the latest revision of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey, owner_key
from vnode.planning.workload_key import workload_of


class Revision(NamedTuple):
    """The ReplicaSet of a pod, and what made that."""

    maker: str
    """Such as `deployment/default/web`; a ReplicaSet that nothing has made is its own maker."""
    owner: OwnerKey | None
    """The ReplicaSet."""


UNREVISED: Final = Revision("", None)
"""Of all other pods: no owner of another kind has two of these at once."""


def revision_of(pod: Object) -> Revision:
    """Return the revision that a pod is of."""
    owner = objects.controller_reference(pod)
    if owner is None or owner.get("kind") != "ReplicaSet":
        return UNREVISED

    return Revision(workload_of(pod), owner_key(pod))


@dataclass(slots=True)
class RevisionCounts:
    """The live pods of one revision, or of several. Counters have no negative numbers."""

    pods: int = 0
    latest: str = ""
    """When the newest pod that was ever counted was made, as the API writes moments."""
    bound: Counter[str] = field(default_factory=Counter)
    """Node -> pods."""
    aimed: Counter[str] = field(default_factory=Counter)
    """Node -> pods without a node that are planned for it."""
    opened: Counter[str] = field(default_factory=Counter)
    """Node -> pods that may go there as well, since they wait."""
    held: Counter[str] = field(default_factory=Counter)
    """Node -> pods that have a place there or may get one, and placeholders."""
    placeholders: Counter[str] = field(default_factory=Counter)
    """Node -> pods that are bound elsewhere and wait for room there."""

    def elsewhere(self, nodes: Container[str]) -> int:
        """Return how many are bound to other nodes than these."""
        return sum(count for node, count in self.bound.items() if node not in nodes)

    def include(self, other: RevisionCounts) -> None:
        """Add the pods of another revision."""
        self.pods += other.pods
        self.latest = max(self.latest, other.latest)
        self.bound.update(other.bound)
        self.aimed.update(other.aimed)
        self.opened.update(other.opened)
        self.held.update(other.held)
        self.placeholders.update(other.placeholders)


def current(latest: Mapping[Revision, str] | Mapping[Revision, float]) -> dict[str, Revision]:
    """Return the revision of each maker that has made a pod last, by when each did."""
    in_order = sorted(latest, key=lambda revision: (latest[revision], revision.owner or ""))
    return {revision.maker: revision for revision in in_order}


def peers(revision: Revision, latest: Mapping[Revision, str]) -> frozenset[Revision]:
    """Return the revisions whose pods are planned together with those of one, which is included."""
    return frozenset((current(latest) | {revision.maker: revision}).values())


def have_superseded(revisions: Iterable[Revision]) -> bool:
    """Tell whether one maker has several revisions."""
    makers = [revision.maker for revision in revisions]
    return len(makers) > 1 and len(set(makers)) < len(makers)
