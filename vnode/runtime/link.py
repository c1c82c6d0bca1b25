"""Connects to one target, as all packages but `vnode.targets` see it.

What informers have of the target, what it reports of itself, and which chaperons are ours, is asked
here; what `vnode.targets` finds out about it, probes and rights among it, is recorded here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vnode.api import class_names, keys, kinds, names, node_features, objects, scheduler_silence
from vnode.api.class_names import ClassNames
from vnode.api.errors import NotFound
from vnode.api.identity import is_chaperon_of
from vnode.api.listeners import Listeners
from vnode.api.node_features import NodeFeatures
from vnode.api.objects import Object
from vnode.api.priorities import PriorityMapping
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import explain
from vnode.runtime.link_health import LEAVING, UNREACHABLE, LinkHealth
from vnode.runtime.start_record import StartRecord
from vnode.runtime.target_options import NO_OPTIONS, TargetOptions

PARENT_UID_INDEX: Final = "parent-uid"
PARENT_KEY_INDEX: Final = "parent-key"
OTHERS_INDEX: Final = "others-parent-key"
"""Index of the chaperons that another Target of this cluster sent, by the key of the parent."""

MOST_ALIKE: Final = 100
"""Chaperons that are looked at of one pod in one target. An honest one has a few."""


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """What an inventory says of a target, as labels and annotations of the virtual node."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


UNDESCRIBED: Final = ClusterDescription()


class Link:
    """Connects to one target, until it is removed from `Links`.

    `chaperons` holds the PodChaperons of this cluster in the target, indexed by parent UID and by
    the key of the parent; `summaries` its ClusterSummary; `quotas`, of ResourceQuotas and of
    LimitRanges, those of the namespaces whose pods may go there, if the target lets us read them.
    """

    def __init__(
        self,
        target: TargetKey,
        client: Client,
        *,
        chaperons: Informer,
        summaries: Informer,
        health: LinkHealth,
        quotas: tuple[Informer, ...] = (),
        labels_excluded: Callable[[str], bool] | None = None,
        is_self: bool = False,
        options: TargetOptions = NO_OPTIONS,
        owns: Callable[[Object], bool] | None = None,
    ) -> None:
        self.target = target
        self.client = client
        self.chaperons = chaperons
        self.summaries = summaries
        self.quotas = quotas
        self.health = health
        self.probed_at: float | None = None  # monotonic, when the target was last asked
        self.labels_excluded = labels_excluded  # for "key=value": not to be put on the node
        self.is_self = is_self  # the target is this cluster itself
        self.options = options
        self.description = UNDESCRIBED  # by an inventory
        self.owns = owns or target.sent  # which chaperons are this cluster's, by this Target
        self._failures: dict[str, str] = {}  # task about this link -> why it failed
        # Those whose copies are watched one by one, since this source may not list them all.
        self.namespaces: set[str] = set()
        self.awaits_quotas = False  # until they are listed, or it is too long
        self.recognized_uid = ""  # the cluster's UID, if its summary does not have it
        self._agent_silent = False  # its heartbeat is overdue
        # `runs_vnode` and `scheduler_silent_since`, as listeners know them
        self._told: tuple[bool, datetime | None] = (False, None)
        self.lacking_rights: tuple[str, ...] | None = None  # of a target that is this cluster
        self._listeners: Listeners[[]] = Listeners()
        self._doubters: Listeners[[]] = Listeners()
        self.starts = StartRecord()
        self._holders = 0
        self.free = asyncio.Event()  # set while nobody needs the client of a link that goes
        self.free.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the client of a link that leaves its target live on for a while, in the block."""
        self._holders += 1
        self.free.clear()
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders:
                self.free.set()

    @property
    def leaves(self) -> bool:
        """Whether the Target was deleted, and its cluster is being cleaned up."""
        return self.health.reason == LEAVING

    @property
    def node_name(self) -> str:
        """The name of the virtual node."""
        return self.target.node_name

    @property
    def failure(self) -> str:
        """Why one of our tasks about this target failed; "" while all work."""
        return next(iter(self._failures.values()), "")

    @property
    def synced(self) -> bool:
        """Whether there has been a complete list of our chaperons in the target.

        Nothing is listed before the cluster that answers is known to be the Target's own.
        """
        return self.chaperons.synced.is_set()

    @property
    def answers(self) -> bool:
        """Whether the target answers, as far as known; send no requests to one that does not."""
        return self.health.healthy or self.health.reason != UNREACHABLE

    @property
    def summary(self) -> Object | None:
        """The target's ClusterSummary, as last received."""
        return self.summaries.store.get(keys.SUMMARY_NAME)

    @property
    def priorities(self) -> PriorityMapping:
        """Which of the target's PriorityClasses stand for ours, by what it says it has."""
        return PriorityMapping(self.options.priority_classes, self.classes)

    @property
    def classes(self) -> ClassNames:
        """The classes that the target says it has."""
        return class_names.decode(self._reported(keys.CLASSES))

    @property
    def node_features(self) -> NodeFeatures:
        """What all of the target's nodes declare, by what it says."""
        return node_features.decode(self._reported(keys.NODE_FEATURES))

    @property
    def scheduler_silent_since(self) -> datetime | None:
        """When the candidate scheduler last gave a sign of life, if the target says it is dead."""
        return scheduler_silence.decode(self._reported(keys.SCHEDULER_SILENT))

    @property
    def streams_namespace(self) -> str:
        """The namespace of the Service for streams of sources, if the target has one; else ""."""
        return str(self._reported(keys.STREAMS) or "")

    def _reported(self, key: str) -> object:
        """Return an annotation of the summary while the agent lives that keeps it true."""
        return objects.annotations(self.summary or {}).get(key) if self.runs_vnode else None

    @property
    def runs_vnode(self) -> bool:
        """Whether the target's agent is vnode, so that chaperons may have its finalizer.

        Annotations of the summary alone do not say so: they outlive an agent that another replaces.
        """
        named = keys.AGENT_VERSION in objects.annotations(self.summary or {})
        return named and not self._agent_silent

    @property
    def lacks_vnode(self) -> bool:
        """Whether the target is known not to run vnode; False while that is unknown."""
        return self.summary is not None and not self.runs_vnode

    @property
    def cluster_uid(self) -> str | None:
        """The UID of the target's cluster; "" if it has none, None while it is unknown."""
        if (summary := self.summary) is None:
            return self.recognized_uid or None

        return objects.annotations(summary).get(keys.CLUSTER_UID) or self.recognized_uid

    def covers(self, namespace: str) -> bool:
        """Tell whether pods of that namespace may go to this target."""
        return self.target.namespace in ("", namespace)

    def is_candidate(self, chaperon: Object, pod_key: str, pod_uid: str) -> bool:
        """Tell whether a chaperon of the target is that of a proxy pod."""
        return self.owns(chaperon) and is_chaperon_of(chaperon, pod_key, pod_uid)

    def candidate(self, pod_key: str, pod_uid: str) -> Object | None:
        """Return the chaperon of a proxy pod, if the target has one.

        It is known by its name, also if somebody has changed its label; one of Admiralty's by the
        label, which a target may put on as many as it likes.
        """
        namespace, name = objects.split_key(pod_key)
        for own_name in names.chaperons(name, pod_uid):
            named = self.chaperons.store.get(objects.join_key(namespace, own_name))
            if named is not None and self.is_candidate(named, pod_key, pod_uid):
                return named

        labelled = self.chaperons.store.by_index(PARENT_UID_INDEX, pod_uid, MOST_ALIKE)
        return next((c for c in labelled if is_chaperon_of(c, pod_key, pod_uid)), None)

    async def fetch_candidate(
        self, pod_key: str, pod_uid: str, is_own: Callable[[Object], bool] = lambda _found: False
    ) -> Object | None:
        """Return what `candidate` does, from the target's API server.

        Call it before deleting a pod that seems to have no chaperon. One of the right name that
        lacks labels is found as well, or of which `is_own` says that it is the pod's.
        """
        namespace, name = objects.split_key(pod_key)
        selector = f"{keys.PARENT_UID}={pod_uid}"
        chaperons = await self.client.list(kinds.POD_CHAPERONS, namespace, label_selector=selector)
        for chaperon in chaperons:
            if self.is_candidate(chaperon, pod_key, pod_uid):
                return chaperon

        for own_name in names.chaperons(name, pod_uid):
            with suppress(NotFound):
                found = await self.client.get(kinds.POD_CHAPERONS, own_name, namespace)
                if self.is_candidate(found, pod_key, pod_uid) or is_own(found):
                    return found

        return None

    def candidates(self, pods: Mapping[str, str]) -> Iterator[tuple[str, Object]]:
        """Yield the chaperons of these pods, of which it gets the keys by UID, with the UIDs."""
        for uid in self.chaperons.store.values_of(PARENT_UID_INDEX):
            if uid in pods and (chaperon := self.candidate(pods[uid], uid)) is not None:
                yield uid, chaperon

    def set_health(self, health: LinkHealth) -> None:
        """Record the result of a probe; call listeners if it changed."""
        changed = (health.healthy, health.reason, health.message) != (
            self.health.healthy,
            self.health.reason,
            self.health.message,
        )
        if changed:
            self.health = health
            self._listeners.call()

    def describe(self, description: ClusterDescription) -> None:
        """Record what an inventory says of the target; call listeners if it changed."""
        if description != self.description:
            self.description = description
            self._listeners.call()

    def set_lacking_rights(self, lacking: tuple[str, ...]) -> None:
        """Record which rights the agent lacks in its own cluster; call listeners if it changed."""
        if lacking != self.lacking_rights:
            self.lacking_rights = lacking
            self._listeners.call()

    def set_agent_silent(self, silent: bool) -> None:
        """Record whether the agent's heartbeat is overdue.

        Call listeners if `runs_vnode` or `scheduler_silent_since` changed; so call it after each
        change of the summary, too.
        """
        if silent and not self._agent_silent:
            self.starts.fell_silent()

        self._agent_silent = silent
        since = self.scheduler_silent_since
        if since is not None and since != self._told[1]:
            self.starts.fell_silent()

        told = (self.runs_vnode, since)
        if told != self._told:
            self._told = told
            self._listeners.call()

    def report(self, task: str, error: Exception | None) -> None:
        """Record that a task about this link failed, or, with None, that it works again.

        This is a `report` of `KeyedTasks`.
        """
        before = self.failure
        self._failures.pop(task, None)
        if error is not None:
            self._failures[task] = f"{task} failed: {explain(error)}; it is retried"

        if self.failure != before:
            self._listeners.call()

    def notify_moved(self) -> None:
        """Call listeners: requests go to another address of the same cluster from now on."""
        self._listeners.call()

    def on_health(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `health`, `failure`, `description`, `runs_vnode`, the address,
        `scheduler_silent_since` or `lacking_rights` changes."""
        self._listeners.add(listener)

    def doubt(self) -> None:
        """Have the target asked soon whether it still allows what it did: it has refused a pod."""
        self._doubters.call()

    def on_doubt(self, listener: Callable[[], None]) -> None:
        """Call `listener` at each `doubt`."""
        self._doubters.add(listener)
