"""Administrators of the source: they write placement policies, and cordon virtual nodes.

Kubernetes' node lifecycle controller is played here, too, and the network between clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.simulation import override_policies
from tests.simulation.clusters import NAMESPACE, SimulatedCluster, target_key
from tests.simulation.override_policies import OverrideChange
from tests.simulation.policies import Cordon, Loss, PolicyChange, PolicySchedule
from tests.simulation.schedule import SPAN
from vnode.api import keys, kinds, objects
from vnode.api.errors import Unreachable
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.taints import NO_EXECUTE, NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Administrators:
    """Plays all of them."""

    source: SimulatedCluster
    targets: Mapping[str, SimulatedCluster]
    note: Callable[[str], None]

    def follow(self, policies: PolicySchedule) -> None:
        """Do everything at its time."""
        for change in policies.changes:
            self.source.later(change.at, lambda c=change: self._change(c))

        for cordon in policies.cordons:
            self.source.later(cordon.at, lambda c=cordon: self._cordon(c, on=True))
            end = cordon.at + cordon.seconds
            self.source.later(end, lambda c=cordon: self._cordon(c, on=False))

        for loss in policies.losses:
            self.source.later(loss.at, lambda x=loss: self._taint(x, on=True))
            self.source.later(loss.at + loss.seconds, lambda x=loss: self._taint(x, on=False))
            if loss.is_real:
                loop = asyncio.get_running_loop()
                loop.call_later(loss.at, self._cut, loss)

    def override(self, changes: tuple[OverrideChange, ...]) -> None:
        """Write an override policy at its times."""
        for change in changes:
            self.source.later(change.at, lambda c=change: self._override(c))

    def _override(self, change: OverrideChange) -> None:
        self.note(f"---- {change}")
        written = change.object(NAMESPACE) if change.value else None
        self._write(kinds.OVERRIDE_POLICIES, override_policies.NAME, written)

    def _change(self, change: PolicyChange) -> None:
        self.note(f"---- {change}")
        written = None if change.spec is None else change.object(NAMESPACE)
        self._write(kinds.PLACEMENT_POLICIES, change.name, written)

    def _write(self, kind: Kind, name: str, written: Object | None) -> None:
        """Have a policy be as it is written; None deletes it."""
        key = f"{NAMESPACE}/{name}"
        present = self.source.server.store.get(kind, key)
        if written is None:
            if present is not None:
                self.source.writer.delete(kind, key)
        elif present is None:
            self.source.writer.create(kind, written, NAMESPACE)
        else:
            self.source.writer.update(kind, key, lambda old: {**old, "spec": written["spec"]})

    def _cordon(self, cordon: Cordon, *, on: bool) -> None:
        self.note(f"---- {cordon}: {'begins' if on else 'ends'}")
        node = target_key(cordon.target).node_name
        self.source.writer.update(
            kinds.NODES, node, lambda old: {**old, "spec": {**old["spec"], "unschedulable": on}}
        )

    def _cut(self, loss: Loss) -> None:
        """Have the source reach a target no more, for a while."""
        server, us = self.targets[loss.target].server, self.source.identity.name
        gone = Unreachable("no route to host")
        fault = server.fail(gone, when=lambda request: request.client == us, times=None)
        server.cut_watches()
        end = min(loss.seconds, SPAN - loss.at)
        asyncio.get_running_loop().call_later(end, fault.clear)

    def _taint(self, loss: Loss, *, on: bool) -> None:
        """Do what the node lifecycle controller does, though the target may well answer."""
        self.note(f"---- {loss}: {'begins' if on else 'ends'}")
        key, node = keys.NODE_FAILURES[0], target_key(loss.target).node_name
        no_execute = {"key": key, "effect": NO_EXECUTE, "timeAdded": self.source.writer.now()}
        added = [{"key": key, "effect": NO_SCHEDULE}, no_execute] if on else []

        def change(old: Object) -> Object:
            others = [t for t in objects.spec(old).get("taints") or () if t["key"] != key]
            return {**old, "spec": {**objects.spec(old), "taints": [*others, *added]}}

        self.source.writer.update(kinds.NODES, node, change)
