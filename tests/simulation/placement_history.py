"""What made pods differ from their plan though nothing about it changed. Pure: fed with changes.

A ReplicaSet that shrinks, as in a rollout, deletes pods that wait first, whatever is planned for
the others: these stay where they were planned as long as there were more. And where a cluster has
not been there yet, since its agent was only starting, it has no share in what is planned meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from tests.faults.snapshot import node_of
from vnode.api import objects
from vnode.api.objects import Object
from vnode.planning.revisions import Revision, revision_of


@dataclass(slots=True)
class PlacementHistory:
    """Hears of each change of pods and Nodes; moments are of the loop."""

    heard: float
    """Seconds after which nobody binds by what was so before a change."""
    _live: Counter[Revision] = field(default_factory=Counter)
    _most: Counter[Revision] = field(default_factory=Counter)  # that lived at once
    _gone: Counter[Revision] = field(default_factory=Counter)  # without ever having a node
    _bound: dict[str, float] = field(default_factory=dict)  # UID -> when
    _away: set[str] = field(default_factory=set)  # Nodes that are not ready
    _returned: dict[str, float] = field(default_factory=dict)  # Node -> when it last became ready

    def on_pod(self, old: Object | None, new: Object | None, now: float) -> None:
        """Take note of a pod that is new, was bound, or ended."""
        before, after = _is_live(old), _is_live(new)
        pod = new or old or {}
        revision = revision_of(pod)
        self._live[revision] += after - before
        self._most[revision] = max(self._most[revision], self._live[revision])
        self._gone[revision] += before and not after and not node_of(pod)
        if node_of(pod):
            self._bound.setdefault(objects.uid(pod), now)

    def on_node(self, node: Object, now: float) -> None:
        """Take note of a Node that is ready, or is not."""
        name = objects.name(node)
        if (objects.condition(node, "Ready") or {}).get("status") != "True":
            self._away.add(name)
        elif name in self._away:
            self._away.remove(name)
            self._returned[name] = now

    def vacated(self, pods: Iterable[Object]) -> int:
        """Return how many more of these pods there were that ended while they waited, at most."""
        present = Counter(map(revision_of, pods))
        return sum(min(self._gone[r], self._most[r] - n) for r, n in present.items())

    def began_without(self, pods: Iterable[Object], nodes: Collection[str]) -> bool:
        """Tell whether one of these pods may have been bound while one of the Nodes was away."""
        last = max(
            (self._returned[n] + self.heard for n in nodes if n in self._returned), default=0
        )
        bound = [at for pod in pods if (at := self._bound.get(objects.uid(pod))) is not None]
        return bool(bound) and (min(bound) < last or not self._away.isdisjoint(nodes))


def _is_live(pod: Object | None) -> bool:
    return pod is not None and not objects.is_terminating(pod) and not objects.is_finished(pod)
