"""Watches the objects with scores that plugins use, while this cluster serves their kinds.

Which are used is known before the term's scheduler starts (`use`); without any nothing is watched.
A kind may be installed later, and removed: then its scores are not known, and that is said. Each
object is read once, when it changes; who schedules asks for all scores of one target.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from vnode.api import cluster_scores, kinds, objects
from vnode.api.cluster_scores import ScoreObject, TargetScores
from vnode.api.errors import Denied
from vnode.api.kinds import Kind
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.score_terms import ScoreReference, ScoreSource
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.runtime.served_informer import ServedInformer
from vnode.runtime.supervisor import sleep_forever, supervise

P = TypeVar("P", bound=Hashable)

_AWAITED: Final = 10.0  # seconds in which scores are answered, but for faults of an API server
_ROLE: Final = "vnode-scores"


class WatchedScores:
    """The scores of all targets, for one term of a leader."""

    def __init__(self, client: Client) -> None:
        self._listeners: Listeners[[]] = Listeners()
        self._used: dict[ScoreReference, None] = {}
        self._add_ons = _WatchedKind[str](
            client, kinds.ADDON_PLACEMENT_SCORES, _read_add_on, self._listeners.call
        )
        self._own = _WatchedKind[TargetKey](
            client, kinds.CLUSTER_SCORES, cluster_scores.read_own, self._listeners.call
        )

    @property
    def used(self) -> tuple[ScoreReference, ...]:
        """The scores that are used."""
        return tuple(self._used)

    def use(self, reference: ScoreReference) -> None:
        """Watch what has such a score; to be called before `run`."""
        if reference.is_absolute:
            self._used[reference] = None

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever scores may be others now, or are known, or why they are not."""
        self._listeners.add(changed)

    def of(self, target: TargetKey, cluster: str) -> TargetScores:
        """Return the scores of a target that Open Cluster Management calls `cluster`."""
        return TargetScores(
            cluster,
            {name: read for _, name, read in self._add_ons.of(cluster)},
            tuple(read for _, _, read in self._own.of(target)),
            self._add_ons.problem() if self._uses(ScoreSource.ADD_ON) else "",
            self._own.problem() if self._uses(ScoreSource.CLUSTER_SCORE) else "",
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        async with supervise() as tasks:
            for watched in self._kinds():
                watched.informer.watch(tasks.keyed())

            await sleep_forever()

    async def wait_known(self) -> None:
        """Return once the scores are known, or why they cannot be, or after a while: pods that have
        nothing to do with them go on."""
        changed = asyncio.Event()
        self._listeners.add(changed.set)
        with suppress(TimeoutError):
            async with asyncio.timeout(_AWAITED):
                while not all(watched.is_answered for watched in self._kinds()):
                    changed.clear()
                    await changed.wait()

    def _uses(self, source: ScoreSource) -> bool:
        return any(reference.source is source for reference in self._used)

    def _kinds(self) -> list[_WatchedKind[str] | _WatchedKind[TargetKey]]:
        found: list[_WatchedKind[str] | _WatchedKind[TargetKey]] = []
        if self._uses(ScoreSource.ADD_ON):
            found.append(self._add_ons)

        if self._uses(ScoreSource.CLUSTER_SCORE):
            found.append(self._own)

        return found


class _WatchedKind(Generic[P]):
    """The objects of one kind, read, by the place that they are about."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        read: Callable[[Object], tuple[P | None, ScoreObject]],
        changed: Callable[[], None],
    ) -> None:
        self._kind = kind
        self._read = read
        self._changed = changed
        self.informer = ServedInformer(client, kind, self._on_object)
        # Place -> key -> what sorts its objects, and what is read of each. No empty dicts.
        self._found: dict[P, dict[str, tuple[str, str, ScoreObject]]] = {}

    @property
    def is_answered(self) -> bool:
        """Whether the objects are known, or why they are not."""
        return self.informer.is_known or self.informer.failure is not None

    def of(self, place: P) -> list[tuple[str, str, ScoreObject]]:
        """Return what is read of the objects of a place, the oldest first, by creation and name."""
        return sorted(self._found.get(place, {}).values(), key=lambda entry: entry[:2])

    def problem(self) -> str:
        """Return why the objects are not known, "" if they are."""
        if (failure := self.informer.failure) is not None:
            denied = isinstance(failure, Denied)
            cure = f"; bind ClusterRole {_ROLE} to the agent (scores.read of the chart)"
            return f"{failure}{cure if denied else ''}"

        if not self.informer.is_known:
            return f"{self._kind.resource} have not been listed yet"

        if not self.informer.is_served:
            return (
                f"this cluster does not serve {self._kind.resource} of version "
                f"{self._kind.version}: install what writes them"
            )

        return ""

    def _on_object(self, old: Object | None, new: Object | None) -> None:
        if old is None and new is None:
            self._found.clear()
            for obj in self.informer.values():
                self._add(obj)
        else:
            if old is not None:
                self._remove(old)

            if new is not None:
                self._add(new)

        self._changed()

    def _add(self, obj: Object) -> None:
        place, read = self._read(obj)
        if place is not None:
            entry = objects.created(obj), objects.name(obj), read
            self._found.setdefault(place, {})[objects.key(obj)] = entry

    def _remove(self, obj: Object) -> None:
        place, _ = self._read(obj)
        if place is not None and (there := self._found.get(place)):
            there.pop(objects.key(obj), None)
            if not there:
                del self._found[place]


def _read_add_on(obj: Object) -> tuple[str, ScoreObject]:
    return objects.namespace(obj), cluster_scores.read_add_on(obj)
