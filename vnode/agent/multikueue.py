"""Says which Targets MultiKueueConfigs are to name: listed ones, those of a set, of a decision.

Targets and decisions are known to packages that do not know Kueue, and the other way round. What is
not known, or cannot be read, is no reason to take a cluster away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from vnode.agent.shared import Shared
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kueue.config import MultiKueueEntry
from vnode.kueue.multikueue import MultiKueueSetup
from vnode.kueue.multikueue_deciding import WorkerCluster
from vnode.placement.decisions.followed import FollowedDecisions
from vnode.planning.cluster_decision import DecisionReference
from vnode.planning.policy_node import PlannedNode
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.targets import model
from vnode.targets.profiles import profile_references
from vnode.targets.target_lister import TargetLister

log = logging.getLogger(__name__)


def make(shared: Shared) -> MultiKueueSetup:
    """Make what keeps them for one term."""
    entries = shared.options.config.kueue.multi_kueue or ()
    wanted = WantedClusters(entries, shared.client, shared.targets, shared.nodes)
    return MultiKueueSetup(shared.client, wanted.by_config, wanted.subscribe, shared.clock)


class WantedClusters:
    """Reads them from informers; `nodes` is that of virtual nodes."""

    def __init__(
        self,
        entries: Sequence[MultiKueueEntry],
        client: Client,
        targets: TargetLister,
        nodes: Informer,
    ) -> None:
        self._entries = entries
        self._targets = targets
        self._nodes = nodes
        self._changed: Callable[[], None] = lambda: None
        self._decisions = FollowedDecisions(client, lambda _concerned: self._changed())
        self._told: set[str] = set()

    def subscribe(self, tasks: KeyedTasks[str], changed: Callable[[], None]) -> None:
        """Watch decisions in these tasks, and have `changed` called when anything has changed."""
        self._changed = changed
        for informer in (*self._targets.informers, self._nodes):
            informer.subscribe(lambda _old, _new: changed())

        for entry in self._entries:
            if entry.decision_ref:
                self._decisions.use(entry.name, entry.decision_ref.reference)

        self._decisions.start(tasks)
        changed()

    def by_config(self) -> Mapping[str, Sequence[WorkerCluster] | None]:
        """Return the clusters of each config, None where they are not known now."""
        found: dict[str, Sequence[WorkerCluster] | None] = {}
        for entry in self._entries:
            there = self._targets_of(entry) if self._targets.synced else None
            found[entry.name] = None if there is None else list(self._workers(entry, there))

        return found

    def _targets_of(self, entry: MultiKueueEntry) -> Iterable[Object] | None:
        """Return the Targets of an entry, in their order."""
        if entry.decision_ref:
            return self._decided(entry.decision_ref.reference)

        if entry.targets:
            keys_ = (TargetKey(*objects.split_key(name)) for name in entry.targets)
            return [obj for key in keys_ if (obj := self._targets.get(key)) is not None]

        _, cluster_targets = self._targets.informers
        made = (
            obj
            for obj in cluster_targets.store.values()
            if objects.labels(obj).get(keys.TARGET_SET) == entry.target_set
        )
        return sorted(made, key=objects.name)

    def _decided(self, reference: DecisionReference) -> Iterable[Object] | None:
        """Return the ClusterTargets of a decision, None if it cannot be read.

        A Target of a namespace may be called like a cluster by whoever administers that namespace,
        and Kueue would send it the Jobs of all.
        """
        decision = self._decisions.find(reference, self._targets.nodes_by_profile(""))
        if decision.problem:
            self._tell(f"clusters of MultiKueue stay as they are: {decision.problem}")
            return None

        found: dict[TargetKey, int] = {}
        for node in self._nodes.store.values():
            position = decision.position(PlannedNode(objects.name(node), objects.labels(node)))
            key = self._targets.of_node(objects.name(node))
            if key is not None and not key.namespace and position is not None:
                found[key] = position

        ordered = sorted(found, key=lambda key: (found[key], str(key)))
        return [obj for key in ordered if (obj := self._targets.get(key)) is not None]

    def _workers(
        self, entry: MultiKueueEntry, targets: Iterable[Object]
    ) -> Iterator[WorkerCluster]:
        """Yield those that do not leave; by profile only those that name one."""
        for obj in targets:
            if objects.is_terminating(obj) or keys.PROFILE_GONE in objects.annotations(obj):
                continue

            key = model.key_of(obj)
            if entry.access == "Secret":
                yield WorkerCluster(key)
            elif profile := profile_references.named_by(obj):
                yield WorkerCluster(key, objects.split_key(profile)[1])
            else:
                self._tell(
                    f"target {key} is left out of MultiKueueConfig {entry.name}: it names no "
                    "ClusterProfile; set access: Secret in kueue.multiKueue"
                )

    def _tell(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            log.warning("%s", text)
