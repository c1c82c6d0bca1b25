"""Keeps connections as Targets and ClusterTargets ask, changed one at a time while the others run
on.

A Target, or the Secret that it names, changes; its key is reconciled: the object is checked, the
kubeconfig read, and if anything that matters is different, the old connection ends and a new one
starts. A problem goes into the object's Ready condition, with the cure.

A connection is what the Target and its Secret say now, and nothing else. If they can no longer be
used, the connection ends, although its old credentials may still work: whoever deletes a Secret may
mean just that, and an agent that restarts would not have them either. Meanwhile the pods in the
target run on. The virtual node allows some seconds to repair the kubeconfig before it is not ready,
and Kubernetes then gives the pods their tolerationSeconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.identity import Identity
from vnode.api.listeners import Listeners
from vnode.api.objects import Object, Objects
from vnode.kube import endpoint as endpoints
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint, Trust
from vnode.kube.events import EventRecorder
from vnode.runtime.controller import Controller
from vnode.runtime.keyed_tasks import KeyedTasks, explain
from vnode.runtime.links import CONNECTING, Links, TargetKey
from vnode.runtime.supervisor import supervise
from vnode.targets import cluster_identity, conditions, expiry, model, target_quota
from vnode.targets.cluster_identity import Expected
from vnode.targets.connection import Connection, fingerprint
from vnode.targets.expiry import CredentialExpiry
from vnode.targets.model import TargetSpec
from vnode.targets.reporting import Reporter, TargetFinding, found
from vnode.targets.secrets import Secrets
from vnode.targets.target_lister import TargetLister
from vnode.telemetry import logs, metrics

_RESTART: Final = 5.0  # seconds before what failed unexpectedly is tried again
_LEADER_WAIT: Final = 20.0  # seconds for a new leader, who then cleans up

log = logging.getLogger(__name__)


class _Running(NamedTuple):
    """A connection, and the fingerprint of what it was made from."""

    digest: str
    connection: Connection


class TargetController:
    """Keeps `links` in step with the Targets of the local cluster.

    Every replica connects (`run`), so that a new leader starts warm; only the leader writes
    (`lead`), to Targets and, when they are deleted, to the clusters behind them. `trust` says what
    the kubeconfig of each may make this process do.
    """

    def __init__(
        self,
        local: Client,
        identity: Identity,
        targets: TargetLister,
        links: Links,
        *,
        clock: Clock,
        trust: Callable[[TargetKey], Trust],
    ) -> None:
        self._local = local
        self._identity = identity
        self._links = links
        self._clock = clock
        self._trust = trust
        self._targets = targets
        self._controller: Controller[TargetKey] = Controller(
            "targets", self._reconcile, workers=4, lane=lambda key: key.namespace, total=16
        )
        self._leading = False
        self._findings: dict[TargetKey, Objects] = {}  # the conditions that it should have
        self._finding_changed: Listeners[TargetKey] = Listeners()
        # Since when (monotonic) connections have no Target, and wait for a new leader.
        self._gone: dict[TargetKey, float] = {}
        self._running: dict[TargetKey, _Running] = {}  # an entry for each that was started
        self._tasks: KeyedTasks[TargetKey] | None = None  # set, as _secrets is, while `run` runs
        # By UID of a Target: the cluster that it was found to be, for as long as the Target exists.
        self._clusters: dict[TargetKey, tuple[str, str]] = {}
        self._secrets: Secrets | None = None

    async def lead(self, events: EventRecorder) -> None:
        """Write conditions, and clean up clusters of deleted Targets, until cancelled.

        A clean-up that is under way then is broken off, and left to the next leader.
        """
        reporter = Reporter(self._local, events, self._finding, self._clock)
        self._finding_changed.add(reporter.wake)
        for key in self._findings:
            reporter.wake(key)

        self._leading = True
        for key in self._gone:
            self._controller.add(key)

        try:
            await reporter.run()
        finally:
            self._leading = False
            for running in list(self._running.values()):
                spec = running.connection.spec
                if running.connection.leaving and self._is_active(spec.key):
                    await self._start(spec, running.connection.endpoint, running.digest)
                    self._gone.pop(spec.key, None)  # it waits for a leader from now on
                    self._controller.add(spec.key)

    def _finding(self, key: TargetKey) -> TargetFinding | None:
        obj, found = self._targets.get(key), self._findings.get(key)
        if obj is None or not found:
            return None

        return TargetFinding(obj, found, cluster_identity.to_record(obj, self._cluster(key, obj)))

    def _cluster(self, key: TargetKey, obj: Object) -> str:
        """Return the UID of the cluster that the Target was last found to be, "" if unknown."""
        uid, cluster = self._clusters.get(key, ("", ""))
        return cluster if uid == objects.uid(obj) else ""

    def _expected(self, key: TargetKey) -> Expected:
        obj = self._targets.get(key)
        return cluster_identity.expected(obj, self._cluster(key, obj)) if obj else Expected()

    def _on_cluster(self, key: TargetKey, cluster: str) -> None:
        if (obj := self._targets.get(key)) is not None:
            self._clusters[key] = objects.uid(obj), cluster
            self._finding_changed.call(key)

    async def run(self) -> None:
        """Connect to all targets until cancelled."""
        for informer in self._targets.informers:
            informer.subscribe(self._on_target)

        self._targets.quota.subscribe(self._controller.add)
        self._links.subscribe(
            lambda link: link.on_health(lambda: self._controller.add(link.target)),
            lambda _link: None,
        )
        async with supervise() as tasks:
            self._tasks = tasks.keyed(self._on_connection, self._clock)
            self._secrets = Secrets(self._local, tasks.keyed(), self._controller.add)
            await self._controller.run()

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        self._controller.add(model.key_of(new or old or {}))

    async def _reconcile(self, key: TargetKey) -> float | None:
        obj = self._targets.get(key)
        with logs.context(target=str(key)):
            if obj is None:
                return await self._forget(key)

            self._gone.pop(key, None)
            if not self._targets.fits(key):
                await self._disconnect(key)
                self._set_problem(key, obj, target_quota.EXCEEDED, self._targets.quota.explain(key))
                return None

            try:
                spec = model.parse(obj)
                endpoint, digest, end = await self._endpoint(spec)
            except ConfigError as error:
                await self._stop(key)
                self._set_problem(key, obj, "Invalid", str(error))
                return None
            except Unreachable as error:
                self._set_problem(key, obj, "SecretUnreadable", str(error))
                return _RESTART
            except Exception as error:
                self._set_problem(key, obj, "Failing", explain(error))
                raise

            await self._ensure(spec, endpoint, digest)
            self._probe_refused(key)
            self._update_conditions(key, obj, end)
            return expiry.seconds_until_change(end, self._clock.now())

    async def _forget(self, key: TargetKey) -> float | None:
        """End the connection of a deleted Target, after the clean-up if this replica leads.

        A replica that does not lead keeps it for a while: it may come to lead, and have to clean
        up.
        """
        self._findings.pop(key, None)
        self._finding_changed.call(key)
        running = self._running.get(key)
        if running and self._is_active(key):
            if self._leading:
                running.connection.leave()  # its end wakes this key again
                return None

            now = self._clock.monotonic()
            left = self._gone.setdefault(key, now) + _LEADER_WAIT - now
            if left > 0:
                return left

        self._gone.pop(key, None)
        self._clusters.pop(key, None)
        await self._disconnect(key)
        metrics.forget(str(key))
        return None

    async def _disconnect(self, key: TargetKey) -> None:
        await self._stop(key)
        if self._secrets is not None:
            self._secrets.use(key, None)

    async def _endpoint(self, spec: TargetSpec) -> tuple[Endpoint, str, CredentialExpiry | None]:
        """Return a target's endpoint, fingerprint and credentials' expiry."""
        assert self._secrets is not None, "reconciled outside run"
        self._secrets.use(spec.key, spec.secret)
        if spec.secret is None:
            return self._local.endpoint, fingerprint(spec, b""), None

        kubeconfig = await self._secrets.kubeconfig(spec.secret)
        endpoint = endpoints.from_kubeconfig(
            kubeconfig, spec.secret.context or None, trust=self._trust(spec.key)
        )
        end = expiry.of_kubeconfig(kubeconfig, spec.secret.context)
        return endpoint, fingerprint(spec, kubeconfig), end

    async def _ensure(self, spec: TargetSpec, endpoint: Endpoint, digest: str) -> None:
        known = self._running.get(spec.key)
        if known is None or known.digest != digest or known.connection.leaving:
            await self._start(spec, endpoint, digest)

    async def _start(self, spec: TargetSpec, endpoint: Endpoint, digest: str) -> None:
        """Replace the connection that there was by a new one."""
        await self._stop(spec.key)
        assert self._tasks is not None, "reconciled outside run"
        connection = Connection(
            spec,
            endpoint,
            identity=self._identity,
            links=self._links,
            clock=self._clock,
            expected=lambda: self._expected(spec.key),
            on_cluster=lambda uid: self._on_cluster(spec.key, uid),
            on_name_conflicts=lambda: self._controller.add(spec.key),
        )
        self._running[spec.key] = _Running(digest, connection)
        self._tasks.start(spec.key, partial(_run, connection), f"target-{spec.key}")

    def _is_active(self, key: TargetKey) -> bool:
        return self._tasks is not None and self._tasks.is_active(key)

    def _probe_refused(self, key: TargetKey) -> None:
        """Probe again, if the cluster was refused: it may have been confirmed."""
        link = self._links.get(key.node_name)
        if link is not None and link.health.reason in cluster_identity.REFUSED:
            self._running[key].connection.probe_now()

    def _on_connection(self, key: TargetKey, _name: str, error: Exception | None) -> None:
        """Note that a connection failed, works again, or has ended."""
        if error is not None and (running := self._running.get(key)):
            running.connection.failure = explain(error)

        self._controller.add(key)

    async def _stop(self, key: TargetKey) -> None:
        if self._running.pop(key, None) and self._tasks is not None:
            await self._tasks.end(key)

    def _update_conditions(self, key: TargetKey, obj: Object, end: CredentialExpiry | None) -> None:
        """Set the conditions from what the connection has found so far."""
        link, connection = self._links.get(key.node_name), self._running[key].connection
        if link is None and connection.failure:
            self._set_problem(key, obj, "Failing", connection.failure)

        if link is None or link.health.reason == CONNECTING:
            return

        conflicts, now = connection.name_conflicts, self._clock.now()
        self._set_conditions(key, found(obj, link, end, conflicts, self._identity.name, now))

    def _set_problem(self, key: TargetKey, obj: Object, reason: str, message: str) -> None:
        """Set the Ready condition to why there is no connection."""
        found = conditions.ready(obj, False, reason, message, self._clock.now())
        self._set_conditions(key, [found])

    def _set_conditions(self, key: TargetKey, wanted: Objects) -> None:
        self._findings[key] = wanted
        self._finding_changed.call(key)


async def _run(connection: Connection) -> None:
    """Run a connection; one that failed while leaving is not retried: orphans are collected."""
    if not connection.leaving:
        await connection.run()
