"""Keeps connections as Targets and ClusterTargets ask, changed one at a time while the others run
on.

A Target, or the Secret that it names, changes; its key is reconciled: the object is checked, the
kubeconfig read, and if anything that matters is different, the old connection ends and a new one
starts; at another address of the same cluster it goes on. A problem goes into the object's Ready
condition, with the cure.

A connection is what the Target and its Secret say now, and nothing else. If they can no longer be
used, the connection ends, although its old credentials may still work: whoever deletes a Secret may
mean just that, and an agent that restarts would not have them either. But where the Secret or the
profile is gone altogether, the Target may be about to follow (`outliving`): the connection lasts a
while for the clean-up, and nothing else is sent by it. Meanwhile the pods in the target run on. The
virtual node allows some seconds to repair the kubeconfig before it is not ready, and Kubernetes
then gives the pods their tolerationSeconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Unreachable, VnodeError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.endpoint import Trust
from vnode.kube.events import EventRecorder
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.keyed_tasks import explain
from vnode.runtime.link import Link
from vnode.runtime.link_health import CONNECTING
from vnode.runtime.links import Links
from vnode.runtime.noted_changes import NotedChanges, is_of_users
from vnode.runtime.supervisor import supervise
from vnode.targets import cluster_identity, conditions, expiry, finalizing, model, target_quota
from vnode.targets.accesses import TargetAccess, TargetAccesses
from vnode.targets.expiry import Renewal
from vnode.targets.findings import TargetFindings
from vnode.targets.outliving import OutlivingConnections
from vnode.targets.profiles.config import NO_INVENTORY, InventoryConfig
from vnode.targets.profiles.refusals import PLUGIN_RUNS, ProfileRefused, ProfileUnavailable
from vnode.targets.reporting import Reporter, found
from vnode.targets.running_connections import RECONNECT_DELAY, RunningConnections
from vnode.targets.target_lister import TargetLister
from vnode.targets.token_renewer import TokenRenewer
from vnode.telemetry import audit, logs, metrics, target_series

_RESTART: Final = 5.0  # seconds before what failed unexpectedly is tried again
_LEADER_WAIT: Final = 20.0  # seconds for a new leader, who then cleans up

log = logging.getLogger(__name__)


class TargetController:
    """Keeps `links` in step with the Targets of the local cluster.

    Every replica connects (`run`), so that a new leader starts warm; only the leader writes
    (`lead`), to Targets and, when they are deleted, to the clusters behind them. `trust` says what
    the kubeconfig of each may make this process do, `inventory` how ClusterProfiles are used, in
    namespaces of which `namespace_labels` returns the labels. `is_ending` tells whether a namespace
    is being deleted.
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
        inventory: InventoryConfig = NO_INVENTORY,
        namespace_labels: Callable[[str], Mapping[str, str]] = lambda _namespace: {},
        is_ending: Callable[[str], bool] = lambda _namespace: False,
    ) -> None:
        self._local = local
        self._identity = identity
        self._links = links
        self._clock = clock
        self._accesses = TargetAccesses(local, trust, inventory, clock, namespace_labels)
        self._targets = targets
        self._outliving = OutlivingConnections(is_ending, clock)
        self._changes: NotedChanges[TargetKey] = NotedChanges(
            "changes of targets",
            "connections",
            (write_limits.TARGET_CHANGES, write_limits.TARGET_CHANGES_OF_NAMESPACE),
            clock,
            namespace=lambda key: key.namespace,
        )
        self._controller: Controller[TargetKey] = Controller(
            "targets",
            self._reconcile,
            subject=lambda key: audit.of_target(key, targets.get(key)),
            workers=4,
            lane=lambda key: key.namespace,
            total=16,
        )
        self.findings = TargetFindings(targets, clock)
        self._renewer: TokenRenewer | None = None  # while this replica leads
        # Since when (monotonic) connections have no Target, and wait for a new leader.
        self._gone: dict[TargetKey, float] = {}
        self._finalizing: dict[TargetKey, float] = {}  # since when (monotonic) we clean up
        self._connections = RunningConnections(
            identity, links, self.findings, local.scope, self._controller.add, clock
        )

    async def lead(self, events: EventRecorder) -> None:
        """Write conditions, and clean up clusters of deleted Targets, until cancelled.

        A clean-up that is under way then is broken off, and left to the next leader.
        """
        reporter = Reporter(self._local, events, self.findings.get, self._clock)
        self.findings.changed.add(reporter.wake)
        renewer = self._renewer = TokenRenewer(
            self._local, self._accesses.stored.get, self._controller.add, self._clock
        )
        self._accesses.changed.add(renewer.wake)
        for key in self.findings:
            reporter.wake(key)
            renewer.wake(key)

        known = self._targets.keys()
        for key in (*self._gone, *known):
            if key in self._gone or finalizing.is_due(self._targets.get(key)):
                self._controller.add(key)

        try:
            async with supervise() as tasks:
                tasks.start(renewer.run(), "token-renewals")
                await reporter.run()
        finally:
            self._renewer = None
            self._finalizing.clear()
            for key in self.findings:  # what only a leader knows of them
                self._controller.add(key)

            for key in await self._connections.stay():
                self._gone.pop(key, None)  # it waits for a leader from now on
                self._controller.add(key)

    @property
    def _leads(self) -> bool:
        return self._renewer is not None

    async def run(self) -> None:
        """Connect to all targets until cancelled."""
        for informer in reversed(self._targets.informers):  # who serves all connects first
            informer.subscribe(self._on_target)

        self._targets.quota.subscribe(self._controller.add)
        self._links.subscribe(self._on_link, lambda _link: None)
        async with supervise() as tasks:
            self._connections.open(tasks)
            self._accesses.watch(tasks, self._on_change)
            await self._controller.run()

    def _on_link(self, link: Link) -> None:
        def wake() -> None:
            self._controller.add(link.target)

        link.on_health(wake)
        link.starts.changed.add(wake)

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        key = model.key_of(objects.latest(old, new))
        if new is not None and is_of_users(old, new):
            self._changes.note(key)

        self._controller.add(key)

    def _on_change(self, key: TargetKey) -> None:
        self._changes.note(key)
        self._controller.add(key)

    async def _reconcile(self, key: TargetKey) -> float | None:
        obj = self._targets.get(key)
        with logs.context(target=str(key)):
            if obj is None:
                return await self._forget(key)

            self._gone.pop(key, None)
            target_series.expect(str(key))
            if self._leads and finalizing.is_due(obj):
                return await self._finalize(key, obj)

            if not self._targets.fits(key):
                await self._disconnect(key)
                why = self._targets.quota.explain(key)
                self._set_problem(key, obj, target_quota.EXCEEDED, why)
                return None

            return self._changes.wait(key) or await self._connect(key, obj)

    async def _connect(self, key: TargetKey, obj: Object) -> float | None:
        """Connect a Target as it asks now, and tell what became of it."""
        try:
            spec = model.parse(obj)
            access = await self._accesses.read(spec)
        except ConfigError as error:
            in_use = self._connections.is_in_use(key)
            left = self._outliving.wait(key, obj, error) if in_use else 0.0
            if left <= 0:
                await self._connections.stop(key)
            else:
                why = "" if self._outliving.is_ending(obj) else str(error)
                self._connections[key].withhold(why)

            reason = error.reason if isinstance(error, ProfileRefused) else "Invalid"
            self._set_problem(key, obj, reason, str(error))
            return left if left > 0 else None
        except ProfileUnavailable as error:
            if error.reason == PLUGIN_RUNS and key in self._connections:
                return _RESTART  # the former connection goes on meanwhile

            self._set_problem(key, obj, error.reason, str(error))
            return _RESTART
        except Unreachable as error:
            self._set_problem(key, obj, "SecretUnreadable", str(error))
            return _RESTART
        except Exception as error:
            self._set_problem(key, obj, "Failing", explain(error))
            raise

        self._outliving.forget(key)
        await self._connections.ensure(spec, access)
        self._connections[key].withhold("")
        self._connections[key].describe(access.description)
        self._probe_refused(key)
        self._update_conditions(key, obj, access)
        return self._seconds_until_change(key, access)

    def _set_problem(self, key: TargetKey, obj: Object, reason: str, why: str) -> None:
        """Report why a Target is not connected, or not as it asks; the former is unhealthy."""
        self.findings.set_problem(key, obj, reason, why)
        if key not in self._connections:
            metrics.TARGET_HEALTHY.labels(str(key)).set(0)

    async def _forget(self, key: TargetKey) -> float | None:
        """End the connection of a deleted Target, after the clean-up if this replica leads.

        A replica that does not lead keeps it for a while: it may come to lead, and have to clean
        up.
        """
        self.findings.forget_conditions(key)
        self._outliving.forget(key)
        connection = self._connections.get(key)
        if connection and self._connections.is_active(key):
            if self._leads:
                connection.leave()  # its end wakes this key again
                return None

            now = self._clock.monotonic()
            left = self._gone.setdefault(key, now) + _LEADER_WAIT - now
            if left > 0:
                return left

        if connection is None and self._leads and self.findings.was_connected(key):
            log.warning("the Target is gone without a connection: what is in its cluster stays")

        self._gone.pop(key, None)
        self._changes.forget(key)
        self._finalizing.pop(key, None)
        self.findings.forget_cluster(key)
        await self._disconnect(key)
        target_series.forget(str(key))
        return None

    async def _finalize(self, key: TargetKey, obj: Object) -> float | None:
        """Clean up the cluster of a Target that is being deleted, and let the Target go.

        An agent that has been started meanwhile connects for that.
        """
        now, connection = self._clock.monotonic(), self._connections.get(key)
        left = self._finalizing.setdefault(key, now) + finalizing.TIMEOUT - now
        if left <= 0 or (connection is not None and connection.is_through):
            await self._disconnect(key)
            await finalizing.remove_finalizer(self._local, obj)
            return _RESTART  # for nothing, unless that failed

        if connection is None or not self._connections.is_active(key):
            try:
                spec = model.parse(obj)
                await self._connections.ensure(spec, await self._accesses.read(spec))
            except VnodeError as error:
                log.info("not cleaned up yet: %s", error)
                return min(RECONNECT_DELAY, left)

        self._connections[key].leave()  # its end wakes this key again
        return left

    async def _disconnect(self, key: TargetKey) -> None:
        await self._connections.stop(key)
        self._accesses.forget(key)

    def _probe_refused(self, key: TargetKey) -> None:
        """Probe again, if the cluster was refused: it may have been confirmed."""
        link = self._links.get(key.node_name)
        if link is not None and link.health.reason in cluster_identity.REFUSED:
            self._connections[key].probe_now()

    def _seconds_until_change(self, key: TargetKey, access: TargetAccess) -> float | None:
        """Return when conditions may be others without an event; None if never."""
        link = self._links.get(key.node_name)
        ends = expiry.seconds_until_change(access.end, self._clock.now())
        lasts = link.starts.seconds_left(self._clock.monotonic()) if link is not None else None
        return min((each for each in (ends, lasts) if each is not None), default=None)

    def _update_conditions(self, key: TargetKey, obj: Object, access: TargetAccess) -> None:
        """Set the conditions from what the connection has found so far."""
        link, connection = self._links.get(key.node_name), self._connections[key]
        if link is None and connection.failure:
            self._set_problem(key, obj, "Failing", connection.failure)

        if link is None or link.health.reason == CONNECTING:
            return

        renewal = access.renewal
        if renewal and self._renewer and (failure := self._renewer.failure(key)):
            renewal = Renewal(renewal.at, failure)

        conflicts, now = connection.name_conflicts, self._clock.now()
        lasting = expiry.condition(obj, access.end, renewal, now)
        expiry.measure(str(key), access.end, lasting)
        monotonic = self._clock.monotonic()
        wanted = found(obj, link, lasting, conflicts, self._identity.name, now, monotonic)
        reported = conditions.control_plane(obj, access.control_plane, now)
        self.findings.set(key, [*wanted, reported] if reported else wanted)
