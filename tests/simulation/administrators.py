"""Administrators of the source: they write placement policies, and cordon virtual nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.clusters import NAMESPACE, SimulatedCluster, target_key
from tests.simulation.policies import Cordon, Policies, PolicyChange
from vnode.api import kinds


@dataclass(frozen=True, slots=True)
class Administrators:
    """Plays all of them."""

    source: SimulatedCluster
    note: Callable[[str], None]

    def follow(self, policies: Policies) -> None:
        """Do everything at its time."""
        for change in policies.changes:
            self.source.later(change.at, lambda c=change: self._change(c))

        for cordon in policies.cordons:
            self.source.later(cordon.at, lambda c=cordon: self._cordon(c, on=True))
            end = cordon.at + cordon.seconds
            self.source.later(end, lambda c=cordon: self._cordon(c, on=False))

    def _change(self, change: PolicyChange) -> None:
        self.note(f"---- {change}")
        key, kind = f"{NAMESPACE}/{change.name}", kinds.PLACEMENT_POLICIES
        present = self.source.server.store.get(kind, key)
        if change.spec is None:
            if present is not None:
                self.source.writer.delete(kind, key)
        elif present is None:
            self.source.writer.create(kind, change.object(NAMESPACE), NAMESPACE)
        else:
            self.source.writer.update(kind, key, lambda old: {**old, "spec": change.spec})

    def _cordon(self, cordon: Cordon, *, on: bool) -> None:
        self.note(f"---- {cordon}: {'begins' if on else 'ends'}")
        node = target_key(cordon.target).node_name
        self.source.writer.update(
            kinds.NODES, node, lambda old: {**old, "spec": {**old["spec"], "unschedulable": on}}
        )
