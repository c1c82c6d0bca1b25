"""Watches the decisions that policies follow, while this cluster serves their kind.

While no policy names one nothing is watched; from then on the CRD of the kind that it names, by its
name alone; and while that is served the kind's objects in the namespace that it names. So decisions
may come later than vnode, and a cluster without them pays nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from vnode.api.errors import Denied, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.placement.decisions import slices
from vnode.placement.decisions.slices import Profiles
from vnode.planning.cluster_decision import AWAITED, ClusterDecision, DecisionReference
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_kinds import ServedKind

NOT_SERVED: Final = "DecisionsNotServed"
UNREADABLE: Final = "DecisionUnreadable"
_AWAITED: Final = 10.0  # seconds in which decisions are answered, but for faults of an API server
_BY_NAME: Final = "decision"  # the index of slices
_ROLE: Final = "vnode-decisions"

_Place: TypeAlias = tuple[Kind, str]  # a kind, and the namespace of its objects


@dataclass(frozen=True, slots=True)
class _Watched:
    """The objects of one place, from the moment at which their kind is served."""

    informer: Informer
    task: str


class FollowedDecisions:
    """Watches the decisions in use once `start` was called.

    Calls `changed` with a test for the decisions that may be others now.
    """

    def __init__(
        self, local: Client, changed: Callable[[Callable[[DecisionReference], bool]], None]
    ) -> None:
        self._local = local
        self._changed = changed
        self._tasks: KeyedTasks[str] | None = None
        self._used: dict[str, DecisionReference] = {}  # by the key of the policy
        self._places: Counter[_Place] = Counter()  # of those; no zeros
        self._kinds: dict[Kind, ServedKind] = {}  # since a policy first named one
        self._watched: dict[_Place, _Watched] = {}

    def start(self, tasks: KeyedTasks[str]) -> None:
        """Watch in these tasks from now on."""
        self._tasks = tasks
        self._watch()

    def use(self, policy: str, reference: DecisionReference | None) -> None:
        """Note the decision that a policy names now, None if it names none."""
        before = self._used.pop(policy, None)
        if reference is not None:
            self._used[policy] = reference

        if before == reference:
            return

        was, is_now = (_place(each) if each is not None else None for each in (before, reference))
        if is_now is not None:
            self._places[is_now] += 1

        if was is not None:
            self._places[was] -= 1
            if not self._places[was]:
                del self._places[was]

        # There may be thousands of policies: others of the same place change nothing.
        is_new = is_now is not None and self._places[is_now] == 1
        if is_new or (was is not None and was not in self._places):
            self._watch()

    def find(self, reference: DecisionReference, profiles: Profiles | None) -> ClusterDecision:
        """Return the decision as it is known now; without the profiles of Targets it is not."""
        kind = slices.kind_of(reference)
        served = self._kinds.get(kind)
        if served is None or not served.is_known:
            return _unknown(reference, kind, served.failure if served else None)

        if not served.is_served:
            problem = (
                f"this cluster does not serve {kind.resource} of version {kind.version}: install "
                f"what writes them; it is noticed at once"
            )
            return ClusterDecision(reference, problem=problem, reason=NOT_SERVED)

        watched = self._watched.get((kind, reference.namespace))
        if profiles is None or watched is None or not watched.informer.synced.is_set():
            return _unknown(reference, kind, watched.informer.failure if watched else None)

        found = watched.informer.store.by_index(_BY_NAME, reference.name)
        return slices.read(reference, found, profiles)

    async def wait_known(self) -> None:
        """Return once the decisions in use are known, or why they cannot be, or after a while:
        what has nothing to do with them goes on."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_AWAITED):
                await self._wait_answered()

    async def _wait_answered(self) -> None:
        while True:
            served, watched = list(self._kinds.values()), list(self._watched.values())
            for kind in served:
                await kind.wait_answered()

            for each in watched:
                await each.informer.answered.wait()

            if served == list(self._kinds.values()) and watched == list(self._watched.values()):
                return

    def _watch(self) -> None:
        """Watch what is in use and served, and nothing else."""
        if self._tasks is None:
            return

        wanted = set(self._places)
        for kind in sorted({kind for kind, _ in wanted} - self._kinds.keys(), key=str):
            self._watch_kind(kind, self._tasks)

        served = {place for place in wanted if self._kinds[place[0]].is_served}
        for place in self._watched.keys() - served:
            self._tasks.stop(self._watched.pop(place).task)

        for place in sorted(served - self._watched.keys(), key=str):
            self._watch_place(place, self._tasks)

    def _watch_kind(self, kind: Kind, tasks: KeyedTasks[str]) -> None:
        def changed() -> None:
            self._watch()
            self._changed(lambda reference: slices.kind_of(reference) == kind)

        self._kinds[kind] = ServedKind(self._local, kind, changed)
        self._kinds[kind].watch(tasks)

    def _watch_place(self, place: _Place, tasks: KeyedTasks[str]) -> None:
        kind, namespace = place
        name = f"{kind.resource}-{namespace}"
        indexes = {_BY_NAME: slices.carried}
        informer = Informer(self._local, kind, namespace=namespace, indexes=indexes)
        self._watched[place] = _Watched(informer, name)

        def is_here(reference: DecisionReference) -> bool:
            return _place(reference) == place

        def changed(old: Object | None, new: Object | None) -> None:
            names = {name for obj in (old, new) if obj is not None for name in slices.carried(obj)}
            self._changed(lambda reference: reference.name in names and is_here(reference))

        async def announce() -> None:
            """Tell of the first answer, which need not be an event."""
            await informer.answered.wait()
            self._changed(is_here)
            await informer.synced.wait()
            self._changed(is_here)

        informer.subscribe(changed)
        tasks.start(name, informer.run, name)
        tasks.start(name, announce, f"{name}-first")


def _place(reference: DecisionReference) -> _Place:
    return slices.kind_of(reference), reference.namespace


def _unknown(
    reference: DecisionReference, kind: Kind, failure: VnodeError | None
) -> ClusterDecision:
    if failure is None:
        problem = f"{reference} is not known yet"
        return ClusterDecision(reference, problem=problem, reason=AWAITED, is_known=False)

    cure = "it is tried again"
    if isinstance(failure, Denied):
        cure = f"bind ClusterRole {_ROLE} to the agent (chart: decisions.follow)"

    problem = f"{reference}: {kind.resource} cannot be read: {failure}; {cure}"
    return ClusterDecision(reference, problem=problem, reason=UNREADABLE, is_known=False)
