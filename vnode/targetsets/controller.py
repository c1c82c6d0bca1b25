"""Keeps the Targets of TargetSets and ClusterTargetSets: one for each profile that a set selects.

One for each term of a leader. A set, a Target, a profile or a proxy pod that is awaited changes, or
a step is due; the set is reconciled: what is there is read from the stores, `deciding` says what is
to be done, and it is done in that order. Targets that somebody else wrote are left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Handler, Informer
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_informer import ServedInformer
from vnode.runtime.status_reporter import StatusReporter
from vnode.runtime.supervisor import supervise
from vnode.targets import cluster_identity
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.target_lister import TargetLister
from vnode.targetsets import deciding, reporting, spec
from vnode.targetsets.deciding import MadeTarget, SetDecision, SetFacts, SetOutcome
from vnode.targetsets.draining import NodeDrains
from vnode.targetsets.set_metrics import SetMetrics
from vnode.targetsets.spec import TargetSetSpec
from vnode.targetsets.writing import TargetWriter
from vnode.telemetry import audit

_NAMESPACE: Final = "namespace"  # index of sets
_RETRY_DELAY: Final = 5.0  # seconds until a profile is asked for again that may not be gone

log = logging.getLogger(__name__)


class _SetState:
    """What is known of a set that the cluster does not say."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.noticed: dict[str, datetime] = {}  # since when profiles are missed, by Target


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
        self._inventory = ServedInformer(client, kinds.CLUSTER_PROFILES, self._on_change)
        self._drains = NodeDrains(client, nodes, pods_on, clock)
        self._states: dict[str, _SetState] = {}  # of sets that exist
        self._draining: dict[str, str] = {}  # virtual node -> the set that drains it
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
                targets.subscribe(self._on_change)

            self._subscribe(self._on_pod)
            with self._metrics.shown():
                await self._controller.run()

    def _on_set(self, obj: Object) -> None:
        self._controller.add(objects.key(obj))

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        self._drains.on_pod(old, new)
        if key := self._draining.get(objects.node_name(objects.latest(old, new))):
            self._controller.add(key)

    def _on_change(self, old: Object | None, new: Object | None) -> None:
        """Reconcile the sets that a profile or Target may concern, or all if none is given: the
        oldest first, since of two that want one name it has the Target."""
        cluster_sets, sets = (informer.store for informer in self._sets)
        found, changed = list(cluster_sets.values()), old or new
        if changed is None:
            found += sets.values()
        elif namespace := objects.namespace(changed):
            found += sets.by_index(_NAMESPACE, namespace)

        for obj in sorted(found, key=_age):
            self._on_set(obj)

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

        made = self._made(obj)
        if self._reports.pending(key, obj) or self._writer.pending(made.values()):
            return None  # the event of our last write wakes this set

        state = self._states.get(key)
        if state is None or state.uid != objects.uid(obj):
            state = self._states[key] = _SetState(objects.uid(obj))

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
        self._forget_drains(key)
        self._states.pop(key, None)

    def _forget_drains(self, key: str) -> None:
        self._draining = {node: of for node, of in self._draining.items() if of != key}

    async def _keep(
        self,
        key: str,
        obj: Object,
        wanted: TargetSetSpec,
        made: Mapping[str, Object],
        state: _SetState,
    ) -> float | None:
        facts = self._facts(obj, wanted, made, state)
        decision = deciding.decide(facts)
        state.noticed = {
            name: state.noticed.get(name, facts.now)
            for name in decision.gone
            if facts.made[name].gone_since is None
        }
        await self._make(obj, facts, made, decision)
        waits = [decision.wait, await self._remove(key, obj, facts, made, decision)]
        waits.append(await self._report(obj, facts, made, decision))
        if not decision.gone and spec.is_confirmed(obj):
            body = {"metadata": {"annotations": {keys.CONFIRM_REMOVAL: None}}}
            await self._reports.expectations.patch(self._client, spec.kind_of(obj), obj, body)

        return min((max(wait, TICK) for wait in waits if wait is not None), default=None)

    def _facts(
        self, obj: Object, wanted: TargetSetSpec, made: Mapping[str, Object], state: _SetState
    ) -> SetFacts:
        selection, inventory = wanted.selection, self._inventory
        trusted = [p for p in inventory.values() if self._config.trusts(objects.namespace(p))]
        selected = {objects.key(p): p for p in trusted if selection.matches(p)}
        known = {name: _made_target(target) for name, target in made.items()}
        names = {objects.name(profile) for profile in selected.values()}
        return SetFacts(
            wanted,
            selected if inventory.is_served else None,
            known,
            self._taken(obj, names - made.keys()),
            state.noticed,
            self._clock.now(),
            is_empty=not any(map(selection.in_scope, trusted)),
            removed=spec.removed(obj),
            held=reporting.is_held(obj),
            confirmed=spec.is_confirmed(obj),
        )

    def _taken(self, obj: Object, names: Iterable[str]) -> dict[str, str]:
        """Return why a set cannot have Targets of these names, for each that exists."""
        taken = {}
        for name in names:
            other = self._targets.get(TargetKey(objects.namespace(obj), name))
            if other is None:
                continue

            kind, owner = spec.target_kind(obj).kind.lower(), objects.controller_reference(other)
            by = f" by {owner['kind'].lower()}/{owner['name']}" if owner else " by hand"
            what = "is being deleted" if objects.is_terminating(other) else f"was made{by}"
            taken[name] = f"{kind}/{objects.key(other)} {what}"

        return taken

    def _made(self, obj: Object) -> dict[str, Object]:
        """Return the Targets that a set has made, by name, but for those that are being deleted."""
        of_cluster = spec.target_kind(obj) == kinds.CLUSTER_TARGETS
        informer = self._targets.informers[1 if of_cluster else 0]
        return {
            objects.name(target): target
            for target in informer.store.values()
            if objects.labels(target).get(keys.TARGET_SET) == objects.name(obj)
            and objects.namespace(target) == objects.namespace(obj)
            and objects.controller_uid(target) == objects.uid(obj)
            and not objects.is_terminating(target)
        }

    async def _make(
        self, obj: Object, facts: SetFacts, made: Mapping[str, Object], decision: SetDecision
    ) -> None:
        """Make Targets, and keep on each what its profile says."""
        for name, profile in decision.create.items():
            if refusal := await self._writer.create(obj, name, profile):
                decision.refused[profile] = refusal

        for name, target in facts.made.items():
            if selected := (facts.selected or {}).get(target.profile):
                await self._writer.remember(made[name], selected)

    async def _remove(
        self,
        key: str,
        obj: Object,
        facts: SetFacts,
        made: Mapping[str, Object],
        decision: SetDecision,
    ) -> float | None:
        """Go on with the removal of Targets; return when to look again."""
        waits: list[float] = []
        for name in decision.back:
            await self._drains.uncordon(_node(obj, name))
            await self._writer.mark(made[name], None)

        for name in decision.mark:
            profile = facts.made[name].profile
            if self._inventory.get(profile) or await self._inventory.is_deleted(profile):
                await self._writer.mark(made[name], facts.now)
                await self._drains.cordon(_node(obj, name))
                log.info("target %s: its profile %s is gone", name, profile)
            else:
                waits.append(_RETRY_DELAY)

        for name in decision.cordoned:
            await self._drains.cordon(_node(obj, name))

        self._forget_drains(key)
        if await self._record_removals(obj, facts, decision):
            return None  # its event wakes this set

        for name in decision.drain:
            node = _node(obj, name)
            self._draining[node] = key
            await self._drains.cordon(node)
            if not (left := await self._drains.left(node)):
                await self._writer.delete(made[name])
                continue

            wait = await self._drains.evict(node, left, objects.uid(obj), facts.spec.per_minute)
            if wait is not None:
                waits.append(wait)

        return min(waits, default=None)

    async def _record_removals(self, obj: Object, facts: SetFacts, decision: SetDecision) -> bool:
        """Record on a set, before a Target goes, that the guard is to count it; tell whether that
        was due. It lasts, since another leader may have to count it."""
        known = {n: since for n, since in facts.removed.items() if deciding.is_recent(since, facts)}
        going = {n: since for n in decision.drain if (since := facts.made[n].gone_since)}
        news = {n: since for n, since in going.items() if deciding.is_recent(since, facts)}
        if facts.confirmed or news.keys() <= known.keys():
            return False

        text = spec.removed_text(known | news)
        body = {"metadata": {"annotations": {keys.REMOVED_TARGETS: text}}}
        await self._reports.expectations.patch(self._client, spec.kind_of(obj), obj, body)
        return True

    async def _report(
        self, obj: Object, facts: SetFacts, made: Mapping[str, Object], decision: SetDecision
    ) -> float | None:
        selected = facts.selected or {}
        listed = reporting.entries(decision, selected, facts.made, made)
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


def _node(obj: Object, name: str) -> str:
    return TargetKey(objects.namespace(obj), name).node_name


def _made_target(target: Object) -> MadeTarget:
    reference = objects.spec(target).get("clusterProfile") or {}
    namespace = objects.namespace(target) or str(reference.get("namespace") or "")
    since = objects.annotations(target).get(keys.PROFILE_GONE)
    connected = cluster_identity.recorded(target) or objects.is_ready(target)
    return MadeTarget(
        objects.name(target),
        objects.join_key(namespace, str(reference.get("name") or "")),
        objects.parse_timestamp(since) if since else None,
        None if connected else objects.created_at(target),
    )
