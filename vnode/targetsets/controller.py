"""Keeps the Targets of TargetSets and ClusterTargetSets: one for each profile that a set selects.

One for each term of a leader. A set, a Target, a profile or a proxy pod that is awaited changes, or
a step is due; the set is reconciled: what is there is read from the stores, `deciding` says what is
to be done, and it is done in that order. Targets that somebody else wrote are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.slices import Slices, in_slices
from vnode.kube.client import Client
from vnode.kube.informer import Handler, Informer
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_informer import ServedInformer
from vnode.runtime.status_reporter import StatusReporter
from vnode.runtime.supervisor import supervise
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.target_lister import TargetLister
from vnode.targetsets import deciding, reporting, spec
from vnode.targetsets.deciding import SetDecision, SetFacts, SetOutcome
from vnode.targetsets.draining import NodeDrains
from vnode.targetsets.reading import SetReader
from vnode.targetsets.removing import Removals
from vnode.targetsets.set_metrics import SetMetrics
from vnode.targetsets.spec import TargetSetSpec
from vnode.targetsets.writing import TargetWriter
from vnode.telemetry import audit

_NAMESPACE: Final = "namespace"  # index of sets
_LOOK: Final = 1.0
"""Seconds between two looks at all that concerns a set, of which something changes all the time
where there are thousands of profiles."""
_TURN: Final = 2.0
"""Seconds for which Targets of one set are written until others have their turn."""


class _SetState:
    """What is known of a set that the cluster does not say."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.noticed: dict[str, datetime] = {}  # since when profiles are missed, by Target
        self.looked_at = float("-inf")  # monotonic


class TargetSets:
    """Runs in the leader.

    `pods_on` returns the pods that are known to be on a virtual node, whoever bound them;
    `subscribe` has a handler called for their changes.
    """

    def __init__(
        self,
        client: Client,
        targets: TargetLister,
        nodes: Informer,
        subscribe: Callable[[Handler], None],
        pods_on: Callable[[str], Iterable[Object]],
        config: InventoryConfig,
        clock: Clock,
    ) -> None:
        self._client = client
        self._targets = targets
        self._subscribe = subscribe
        self._config = config
        self._clock = clock
        self._sets = tuple(
            Informer(
                client, kind, optional=True, indexes={_NAMESPACE: lambda o: (objects.namespace(o),)}
            )
            for kind in (kinds.CLUSTER_TARGET_SETS, kinds.TARGET_SETS)
        )
        self._inventory = ServedInformer(
            client, kinds.CLUSTER_PROFILES, self._on_profile, trim=self._kept
        )
        self._states: dict[str, _SetState] = {}  # of sets that exist
        # One at a time; sets of a namespace have turns with those of others.
        self._controller: Controller[str] = Controller(
            "target-sets",
            self._reconcile,
            subject=self._subject,
            workers=1,
            lane=objects.key_namespace,
            namespace=objects.key_namespace,
            total=1,
        )
        wake, limit = self._controller.add, write_limits.TARGET_SETS
        self._reports = StatusReporter(client, "targetsets", limit, wake=wake, clock=clock)
        self._writer = TargetWriter(client, clock)
        self._reader = SetReader(targets, self._inventory, config, self._writer, clock)
        drains = NodeDrains(client, nodes, pods_on, clock)
        self._removals = Removals(
            client, self._inventory, drains, self._writer, self._reports.expectations, clock
        )
        self._metrics = SetMetrics()

    async def run(self) -> None:
        """Work until cancelled; Targets and proxy pods must be known. Without CRDs there are no
        sets, and without sets no profiles are watched."""
        async with supervise() as tasks:
            keyed: KeyedTasks[str] = tasks.keyed()
            for informer in self._sets:
                informer.subscribe(lambda old, new: self._on_set(objects.latest(old, new)))
                informer.subscribe(lambda _old, _new: self._inventory.watch(keyed))
                tasks.start(informer.run(), informer.kind.plural)

            for targets in self._targets.informers:
                targets.subscribe(self._on_target)

            self._subscribe(self._on_pod)
            with self._metrics.shown():
                await self._controller.run()

    def _on_set(self, obj: Object) -> None:
        self._controller.add(objects.key(obj))

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        key = self._removals.on_pod(old, new)
        if key and (obj := self._set(key)):
            self._look_soon([obj])

    def _kept(self, profile: Object) -> Object:
        """Return what is kept of a profile: of one that is not believed, that it is there."""
        if self._config.trusts(objects.namespace(profile)):
            return profile

        fields = ("name", "namespace", "uid", "resourceVersion")
        metadata = objects.metadata(profile)
        return {"metadata": {field: metadata[field] for field in fields if field in metadata}}

    def _on_profile(self, old: Object | None, new: Object | None) -> None:
        """Reconcile the sets that a profile may concern, or all if none is given."""
        cluster_sets, sets = (informer.store for informer in self._sets)
        changed = old or new
        if changed and not self._config.trusts(objects.namespace(changed)):
            return  # it is for no set, whoever may write it

        among = sets.by_index(_NAMESPACE, objects.namespace(changed)) if changed else sets.values()
        self._look_soon([*cluster_sets.values(), *among])

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        """Reconcile the sets that a Target may be of, or in the way of: those of its namespace, so
        that what tenants do with theirs has no others looked at."""
        if new is None:
            self._writer.forget_target(objects.key(objects.latest(old, new)))

        cluster_sets, sets = (informer.store for informer in self._sets)
        namespace = objects.namespace(objects.latest(old, new))
        among = sets.by_index(_NAMESPACE, namespace) if namespace else cluster_sets.values()
        self._look_soon(among)

    def _look_soon(self, sets: Iterable[Object]) -> None:
        """Reconcile sets, each once in `_LOOK`: the oldest first, since of two that want one name
        it has the Target."""
        ordered = [objects.key(obj) for obj in sorted(sets, key=_age)]
        states = filter(None, map(self._states.get, ordered))
        due = max((state.looked_at for state in states), default=float("-inf")) + _LOOK
        wait = due - self._clock.monotonic()
        for key in ordered:
            if wait > TICK:
                self._controller.add_after(key, wait)
            else:
                self._controller.add(key)

    def _set(self, key: str) -> Object | None:
        cluster_sets, sets = self._sets
        return (sets if "/" in key else cluster_sets).store.get(key)

    def _subject(self, key: str) -> audit.Subject:
        kind = kinds.scoped(kinds.TARGET_SETS, objects.split_key(key)[0])
        return audit.subject(kind, key, self._set(key))

    async def _reconcile(self, key: str) -> float | None:
        obj = self._set(key)
        if obj is None or objects.is_terminating(obj):
            self._forget(key)
            return None

        made = await self._reader.made(obj)
        if made is None or self._reports.pending(key, obj):
            return None  # the event of our last write wakes this set

        state = self._states.get(key)
        if state is None or state.uid != objects.uid(obj):
            self._forget(key)  # one of the same name that there was
            state = self._states[key] = _SetState(objects.uid(obj))

        state.looked_at = self._clock.monotonic()
        try:
            wanted = spec.decode(obj)
        except ConfigError as error:
            return await self._fail(obj, SetOutcome("InvalidSpec", str(error)))

        scope = wanted.selection.namespace
        if scope and not self._config.trusts(scope):
            why = (
                f"the agent's configuration (inventory.namespaces) does not list {scope}, so that "
                "nothing is made or removed"
            )
            return await self._fail(obj, SetOutcome("NamespaceNotAllowed", why))

        if not self._inventory.is_known:
            return None  # what is known of it wakes all sets

        if not self._inventory.is_served and not made:
            why = "this cluster does not serve ClusterProfiles: install the inventory's CRD"
            return await self._fail(obj, SetOutcome(deciding.NOT_SERVED, why))

        return await self._keep(key, obj, wanted, made, state)

    def _forget(self, key: str) -> None:
        self._reports.forget(key)
        self._metrics.forget(key)
        self._removals.forget(key)
        if state := self._states.pop(key, None):
            self._writer.forget_set(state.uid)

    async def _keep(
        self,
        key: str,
        obj: Object,
        wanted: TargetSetSpec,
        made: Mapping[str, Object],
        state: _SetState,
    ) -> float | None:
        facts, decision = await self._reader.facts(obj, wanted, made, state.noticed), SetDecision()
        async for _ in in_slices(deciding.steps(facts, decision), self._clock):
            pass

        state.noticed = {
            name: state.noticed.get(name, facts.now)
            for name in decision.gone
            if facts.made[name].gone_since is None
        }
        again = await self._make(obj, decision)
        waits = [decision.wait, again, await self._remember(facts, made)]
        if again is None:
            waits.append(await self._removals.go_on(key, obj, facts, made, decision))

        waits.append(await self._report(obj, facts, made, decision))
        if not decision.gone and spec.is_confirmed(obj):
            body = {"metadata": {"annotations": {keys.CONFIRM_REMOVAL: None}}}
            await self._reports.expectations.patch(self._client, spec.kind_of(obj), obj, body)

        return min((max(wait, TICK) for wait in waits if wait is not None), default=None)

    async def _make(self, obj: Object, decision: SetDecision) -> float | None:
        """Make Targets; return when to go on if that is not all of them, before any is removed."""
        until = self._clock.monotonic() + _TURN
        async for name, profile in in_slices(decision.create.items(), self._clock):
            if self._clock.monotonic() >= until:
                return TICK

            if refusal := await self._writer.create(obj, name, profile):
                decision.refused[profile] = refusal

        return None

    async def _remember(self, facts: SetFacts, made: Mapping[str, Object]) -> float | None:
        """Keep on each Target what its profile says; return when to go on, likewise."""
        until = self._clock.monotonic() + _TURN
        async for name, target in in_slices(facts.made.items(), self._clock):
            if self._clock.monotonic() >= until:
                return TICK

            if selected := (facts.selected or {}).get(target.profile):
                await self._writer.remember(made[name], selected)

        return None

    async def _report(
        self, obj: Object, facts: SetFacts, made: Mapping[str, Object], decision: SetDecision
    ) -> float | None:
        selected, slices = facts.selected or {}, Slices(self._clock)
        listed = reporting.entries(decision, selected, facts.made, made)
        await slices.give_way()
        states = reporting.states(decision, listed)
        self._metrics.note(objects.key(obj), states, held=decision.held is not None)
        status = reporting.status(obj, decision, len(selected), listed, facts.now)
        return await self._write(obj, status)

    async def _fail(self, obj: Object, outcome: SetOutcome) -> float | None:
        self._metrics.forget(objects.key(obj))
        return await self._write(obj, reporting.failure(obj, outcome, self._clock.now()))

    async def _write(self, obj: Object, status: Object) -> float | None:
        return await self._reports.report(objects.key(obj), spec.kind_of(obj), obj, status)


def _age(obj: Object) -> tuple[str, str]:
    return objects.created(obj), objects.key(obj)
