"""Writes a cluster's capacity, and its classes, to the ClusterSummary `singleton`.

Informers of nodes and pods feed the running sums of `capacity`; a change of either, of a class, or
of the summary itself by somebody else, leads to a write, at most one a second and only if the
summary would be different. The sources watch it. Their schedulers depend on the free resources in
it, so the first change after a quiet second is written at once.

Each minute there is a new heartbeat in it, by which sources know that vnode still runs here: one
write, and one event of a watch for each source. An agent goes on with that of the one before it,
so that a restart writes nothing. Whether the candidate scheduler lives is in it
only if it does not.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from vnode.api import keys, kinds, objects, summary_reports
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.rows import MODEL_LABELS
from vnode.api.shared_strings import sharing
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.nodes import capacity
from vnode.nodes.candidate_scheduler import SchedulerLiveness
from vnode.nodes.classes import Classes
from vnode.nodes.coexistence import Coexistence
from vnode.runtime import supervisor
from vnode.runtime.controller import Controller
from vnode.telemetry import audit

INTERVAL: Final = 1.0  # seconds between writes
HEARTBEAT: Final = 60.0  # seconds between heartbeats

_OURS: Final = (
    keys.AGENT_VERSION,
    keys.CLASSES,
    keys.HEARTBEAT,
    keys.CLUSTER_NAME,
    keys.CLUSTER_UID,
    keys.FREE_RESOURCES,
    keys.KEPT,
    keys.NODE_FEATURES,
    keys.ROWS,
    keys.SCHEDULER_SILENT,
    keys.STREAMS,
    keys.USED_BY_SOURCES,
)

log = logging.getLogger(__name__)


class SummaryWriter:
    """Keeps the ClusterSummary of the local cluster, which is `cluster`, up to date.

    `namespace` is that of the agents, which has the candidate scheduler's Lease. `model_labels` are
    the labels by which its rows tell models of nodes apart. `streams_namespace` is that of the
    Service for streams of sources, "" if there is none. `proxies` has the proxy pods, if others
    watch them: with thousands of them on virtual nodes it costs much to watch them twice.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        clock: Clock,
        cluster: Identity | None = None,
        coexistence: Coexistence | None = None,
        model_labels: Sequence[str] = MODEL_LABELS,
        streams_namespace: str = "",
        proxies: Informer | None = None,
    ) -> None:
        self._streams_namespace = streams_namespace
        self._cluster = cluster
        self._model_labels = model_labels
        self._coexistence = coexistence or Coexistence(client)
        self._client = client
        self._clock = clock
        self._usage = capacity.Usage()
        self._nodes = Informer(
            client,
            kinds.NODES,
            label_selector=keys.REAL_NODES,
            trim=capacity.trim_node,
        )
        self._pods = Informer(
            client,
            kinds.PODS,
            field_selector=capacity.PLAIN_PODS if proxies else capacity.RUNNING_PODS,
            trim=sharing(capacity.trim_pod),
        )
        self._proxies = proxies
        self._summaries = Informer.of_object(client, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        self._classes = Classes(client, self._enqueue)
        self._scheduler = SchedulerLiveness(client, namespace, clock=clock, changed=self._enqueue)
        self._controller: Controller[str] = Controller(
            "summary", self._reconcile, subject=audit.agent, workers=1
        )
        self._last: Object | None = None  # the summary as our last write left it
        self._written_at = float("-inf")  # monotonic
        self._heartbeat = ""  # the present one, as text and as the moment (monotonic) of it
        self._beat_at = float("-inf")

    async def run(self) -> None:
        """Work until cancelled."""
        informers = (self._nodes, self._pods, self._summaries)
        async with supervisor.supervise() as tasks:
            self._pods.subscribe(self._on_pod)
            self._pods.subscribe(self._coexistence.on_pod)
            self._nodes.subscribe(lambda _old, _new: self._enqueue())
            self._summaries.subscribe(self._on_summary)
            for informer in informers:
                tasks.start(informer.run(), f"summary-{informer.kind.plural}")

            self._classes.start(tasks)
            for informer in informers:
                await informer.synced.wait()

            if self._proxies is not None:
                await self._proxies.synced.wait()
                self._proxies.subscribe(self._on_proxy)

            tasks.start(self._scheduler.run(), "summary-candidate-scheduler")
            self._coexistence.pods_known()
            self._enqueue()
            await self._controller.run()

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        if self._usage.change(old, new):
            self._enqueue()

    def _on_proxy(self, old: Object | None, new: Object | None) -> None:
        """Count a proxy that somebody has bound to a machine; spread it is by vnode alone."""
        counted = capacity.on_machine(new)
        if counted is not None or capacity.on_machine(old) is not None:
            self._on_pod(objects.latest(old, new), counted)

    def _on_summary(self, _old: Object | None, new: Object | None) -> None:
        """Take the summary as it is now: after our write, a change by others, or a deletion."""
        self._last = new
        self._enqueue()

    def _enqueue(self) -> None:
        wait = self._written_at + INTERVAL - self._clock.monotonic()
        if wait > 0:
            self._controller.add_after(keys.SUMMARY_NAME, wait)
        else:
            self._controller.add(keys.SUMMARY_NAME)

    async def _reconcile(self, _name: str) -> float | None:
        wait = self._written_at + INTERVAL - self._clock.monotonic()
        if wait > 0:
            return wait

        now = self._clock.monotonic()
        present = summary_reports.current(objects.annotations(self._last or {}))
        self._beat(now, present)
        wanted = capacity.summary(
            self._nodes.store.values(),
            self._usage,
            self._cluster,
            classes=self._classes.text(present.get(keys.CLASSES, "")),
            streams_namespace=self._streams_namespace,
            scheduler_silent=self._scheduler.silent_since(present.get(keys.SCHEDULER_SILENT, "")),
            heartbeat=self._heartbeat,
            model_labels=self._model_labels,
        )
        next_beat = self._beat_at + HEARTBEAT - now
        if self._last is None:
            await self._create(wanted)
            return next_beat

        patch = objects.merge_diff(_comparable(self._last), _comparable(wanted))
        if patch:
            self._written_at = self._clock.monotonic()
            self._last = await self._client.patch(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, patch)

        return next_beat

    def _beat(self, now: float, present: Object) -> None:
        """Renew the heartbeat once it is due; our first is that of the summary, if that is not."""
        wall = self._clock.now()
        if not self._heartbeat:
            age = summary_reports.heartbeat_age(present, wall)
            if age is not None and 0 <= age < HEARTBEAT:
                self._heartbeat, self._beat_at = present[keys.HEARTBEAT], now - age

        if now >= self._beat_at + HEARTBEAT:
            self._heartbeat, self._beat_at = objects.timestamp(wall), now

    async def _create(self, wanted: Object) -> None:
        """Create the summary; after AlreadyExists the informer has it by the next attempt."""
        kind = kinds.CLUSTER_SUMMARIES
        self._written_at = self._clock.monotonic()
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **wanted}
        self._last = await self._client.create(kind, body)


def _comparable(summary: Object) -> Object:
    """Return the parts of a summary that we own, with all labels, which the sources read."""
    annotations = objects.annotations(summary)
    return {
        "metadata": {
            "labels": objects.labels(summary),
            "annotations": {key: annotations[key] for key in _OURS if key in annotations},
        },
        "capacity": summary.get("capacity") or {},
        "allocatable": summary.get("allocatable") or {},
    }
