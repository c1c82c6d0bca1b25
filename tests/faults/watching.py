"""Follows all clusters, past the fault proxies: the present Snapshot, and the whole History."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.faults import followed_objects
from tests.faults.gangs import GangHistory, WatchedGang
from tests.faults.harness import Harness
from tests.faults.history import History, Suspicion
from tests.faults.jobs import Indexes
from tests.faults.plan import SOURCE, TARGETS, Wish
from tests.faults.results import Results
from tests.faults.snapshot import FleetSnapshot, Violation, node_of, virtual_node
from tests.faults.targets import NAMESPACE
from vnode.api import keys, kinds, objects
from vnode.api.clock import happens_within
from vnode.api.errors import NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following.references import Ref
from vnode.kube.client import Client
from vnode.kube.informer import Informer

FROM_SOURCE = f"{keys.PARENT_CLUSTER_NAME}={SOURCE}"
"""Selects in a target what came from the source."""
_AGAIN = 0.5
FOLLOWED = tuple(followed_objects.RESOURCES.values())


@dataclass(frozen=True, slots=True)
class _Look:
    """What is looked at, and where."""

    client: Client
    kind: Kind
    namespace: str | None = NAMESPACE
    label_selector: str = ""

    def informer(self) -> Informer:
        return Informer(
            self.client, self.kind, namespace=self.namespace, label_selector=self.label_selector
        )

    async def list(self) -> dict[str, Object]:
        found = await self.client.list(
            self.kind, self.namespace, label_selector=self.label_selector
        )
        return {objects.key(obj): obj for obj in found}


@dataclass(slots=True)
class Watcher:
    """`run` keeps it up to date; `changed` is set at each event."""

    harness: Harness
    history: History = field(default_factory=History)
    indexes: Indexes = field(default_factory=Indexes)
    results: Results = field(default_factory=Results)
    gangs: GangHistory = field(default_factory=GangHistory)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    removed: set[str] = field(default_factory=set)  # virtual nodes whose pods may end
    forced: frozenset[str] = frozenset()  # targets whose pods may be replaced before they end
    unasked: frozenset[str] = frozenset()  # targets of which no rule holds just now
    drained: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by policies
    _informers: dict[str, Informer] = field(default_factory=dict)
    _suspicions: asyncio.Queue[Suspicion] = field(default_factory=asyncio.Queue)
    _early: asyncio.Queue[WatchedGang] = field(default_factory=asyncio.Queue)

    def __post_init__(self) -> None:
        self._informers = {name: look.informer() for name, look in self._looks().items()}

    def _looks(self) -> dict[str, _Look]:
        source = self.harness.source
        looks = {
            "pods": _Look(source, kinds.PODS),
            "jobs": _Look(source, kinds.JOBS),
            "nodes": _Look(source, kinds.NODES, None),
            "targets": _Look(source, kinds.TARGETS),
        }
        for kind in FOLLOWED:
            looks[kind.plural] = _Look(source, kind, label_selector=followed_objects.SELECTOR)

        for target in TARGETS:
            there = self.harness.clients[target]
            looks[f"{target}/c"] = _Look(there, kinds.POD_CHAPERONS, label_selector=FROM_SOURCE)
            for kind in FOLLOWED:
                looks[f"{target}/{kind.plural}"] = _Look(there, kind, label_selector=FROM_SOURCE)

            looks[f"{target}/d"] = _Look(there, kinds.PODS, label_selector=FROM_SOURCE)

        return looks

    @property
    def violations(self) -> list[Violation]:
        """What was wrong at some moment."""
        self.gangs.look(time.monotonic())
        return self.history.violations + self.indexes.violations + self.gangs.violations

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, informer in self._informers.items():
                informer.subscribe(lambda old, new, name=name: self._on(name, old, new))
                group.create_task(informer.run(), name=f"look at {name}")

            group.create_task(self._confirm(), name="confirm")
            group.create_task(self._confirm_gangs(), name="confirm gangs")

    async def synced(self) -> None:
        """Return once everything has been seen."""
        for informer in self._informers.values():
            await informer.synced.wait()

    def _on(self, name: str, old: Object | None, new: Object | None) -> None:
        self.changed.set()
        if name == "pods":
            self._on_proxy(new or old or {}, new)
        elif name.endswith("/c"):
            self.history.on_chaperon(name.partition("/")[0], old, new)
            self.results.on_chaperon(new)
            if early := self.gangs.on_chaperon(new):
                self._early.put_nowait(early)

        elif name.endswith("/d"):
            self._on_delegate(name.partition("/")[0], old, new)

    def _on_proxy(self, pod: Object, new: Object | None) -> None:
        self.history.on_proxy(new)
        self.gangs.on_proxy(new)
        self.indexes.on_proxy(pod)
        if node_of(pod) in self.removed:
            self.history.on_target_gone(pod)

    def _on_delegate(self, cluster: str, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.indexes.on_delegate(new, forced=cluster in self.forced)

        latest, now = objects.latest(old, new), time.monotonic()
        self.gangs.on_delegate(cluster, latest, now, is_there=new is not None)
        for suspicion in self.history.on_delegate(cluster, old, new):
            if suspicion.earlier.cluster not in self.forced:
                self._suspicions.put_nowait(suspicion)

    async def _confirm(self) -> None:
        while True:
            suspicion = await self._suspicions.get()
            there = await self._is_there(suspicion)
            if there:
                self.history.confirm(suspicion)
            elif there is None:
                await asyncio.sleep(_AGAIN)
                self._suspicions.put_nowait(suspicion)

    async def _confirm_gangs(self) -> None:
        """Ask the source for all pods where too few of a gang seem to be bound."""
        while True:
            gang = await self._early.get()
            try:
                pods = await self.harness.source.list(kinds.PODS, NAMESPACE)
            except VnodeError:
                await asyncio.sleep(_AGAIN)
                self._early.put_nowait(gang)
            else:
                self.gangs.confirm(gang, pods)

    async def _is_there(self, suspicion: Suspicion) -> bool | None:
        """Tell whether the earlier delegate still is; None if its cluster does not say."""
        earlier = suspicion.earlier
        namespace, name = objects.split_key(earlier.key)
        try:
            pod = await self.harness.clients[earlier.cluster].get(kinds.PODS, name, namespace)
        except NotFound:
            return False
        except VnodeError:
            return None

        return objects.uid(pod) == earlier.uid

    def remove(self, target: str) -> None:
        """Allow pods on that target to end with it, from now on."""
        node = virtual_node(target)
        self.removed.add(node)
        for pod in self._informers["pods"].store.values():
            if node_of(pod) == node:
                self.history.on_target_gone(pod)

    def snapshot(self, wish: Wish, survivors: Mapping[str, str] | None = None) -> FleetSnapshot:
        """Return what the watches have shown so far."""
        found = {
            name: {objects.key(obj): obj for obj in informer.store.values()}
            for name, informer in self._informers.items()
        }
        return self._build(found, wish, survivors)

    async def fresh_snapshot(self, wish: Wish, survivors: Mapping[str, str]) -> FleetSnapshot:
        """Return what the API servers say now, each asked anew."""
        looks = self._looks()
        found = await asyncio.gather(*(look.list() for look in looks.values()))
        return self._build(dict(zip(looks, found, strict=True)), wish, survivors)

    def _build(
        self,
        found: Mapping[str, Mapping[str, Object]],
        wish: Wish,
        survivors: Mapping[str, str] | None,
    ) -> FleetSnapshot:
        asked = [target for target in TARGETS if target not in self.unasked]
        return FleetSnapshot(
            wish=wish,
            proxies=found["pods"],
            jobs=found["jobs"],
            nodes=found["nodes"],
            targets=found["targets"],
            chaperons={target: found[f"{target}/c"] for target in asked},
            delegates={target: found[f"{target}/d"] for target in asked},
            followed={target: _by_ref(found, f"{target}/") for target in asked},
            originals=_by_ref(found, ""),
            survivors=survivors or {},
            excused=dict(self.history.excused),
            drained=self.drained,
        )

    async def change(self, seconds: float) -> None:
        """Return when something has changed, or after that time."""
        self.changed.clear()
        await happens_within(self.changed, seconds)


def _by_ref(found: Mapping[str, Mapping[str, Object]], prefix: str) -> dict[Ref, Object]:
    return {
        Ref(kind, objects.namespace(obj), objects.name(obj)): obj
        for kind in FOLLOWED
        for obj in found[f"{prefix}{kind.plural}"].values()
    }
