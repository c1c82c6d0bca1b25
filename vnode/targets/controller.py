"""Targets and ClusterTargets -> connections, changed one at a time while the others run on.

A Target, or the Secret that it names, changes; its key is reconciled: the object is checked, the
kubeconfig read, and if anything that matters is different, the old connection ends and a new one
starts. What is wrong is for the object's Ready condition, with the cure.

A connection is what the Target and its Secret say now, and nothing else. Where they cannot be used
any more, the connection ends, although its old credentials may still work: whoever deletes a Secret
may mean just that, and an agent that was restarted would not have them either. The pods in the
target run on meanwhile; the virtual node gives its kubeconfig some seconds to be put right before
it is not ready, and Kubernetes then gives the pods their tolerationSeconds.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import Final

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
from vnode.targets import cluster_identity, conditions, expiry, model, name_conflicts
from vnode.targets.cluster_identity import Expected
from vnode.targets.conditions import ready
from vnode.targets.connection import Connection, fingerprint
from vnode.targets.expiry import CredentialExpiry
from vnode.targets.model import TargetSpec
from vnode.targets.reporting import Reporter, TargetFinding
from vnode.targets.secrets import Secrets
from vnode.targets.target_lister import TargetLister
from vnode.telemetry import logs

_RESTART: Final = 5.0  # seconds before what failed unexpectedly is tried again
_LINGER: Final = 20.0  # seconds in which somebody leads again, who then says the farewell

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Running:
    """A connection, and the fingerprint of what it was made from."""

    print: str
    connection: Connection


class TargetController:
    """Keeps `links` in step with the Targets of the local cluster.

    Every replica connects (`run`), so that a new leader starts warm; only the leader writes
    (`lead`), to Targets and, when they are deleted, to the clusters behind them.
    """

    def __init__(
        self,
        local: Client,
        identity: Identity,
        targets: TargetLister,
        links: Links,
        *,
        clock: Clock,
        trust: Trust,
    ) -> None:
        self._local = local
        self._identity = identity
        self._links = links
        self._clock = clock
        self._trust = trust
        self._targets = targets
        self._controller: Controller[TargetKey] = Controller("targets", self._reconcile, workers=4)
        self._leading = False
        self._findings: dict[TargetKey, Objects] = {}  # the conditions that it should have
        self._found: Listeners[TargetKey] = Listeners()
        # Since when (monotonic) connections have no object, and wait for somebody to lead.
        self._gone: dict[TargetKey, float] = {}
        self._running: dict[TargetKey, _Running] = {}  # an entry for each that was started
        self._tasks: KeyedTasks[TargetKey] | None = None  # set, as _secrets is, while `run` runs
        # By UID of a Target: the cluster that it was found to be, for as long as the Target exists.
        self._clusters: dict[TargetKey, tuple[str, str]] = {}
        self._secrets: Secrets | None = None

    async def lead(self, events: EventRecorder) -> None:
        """Write what is found, and say farewell to targets that are given up, until cancelled.

        A farewell that is under way then is broken off, for whoever leads next to say it.
        """
        reporter = Reporter(self._local, events, self._finding)
        self._found.add(reporter.wake)
        for key in self._findings:
            reporter.wake(key)

        self._leading = True
        for key in self._gone:
            self._controller.add(key)

        try:
            await reporter.run()
        finally:
            self._leading = False
            for one in list(self._running.values()):
                if one.connection.leaving and self._is_active(one.connection.spec.key):
                    await self._start(one.connection.spec, one.connection.endpoint, one.print)
                    self._gone.pop(one.connection.spec.key, None)  # it waits from now on
                    self._controller.add(one.connection.spec.key)

    def _finding(self, key: TargetKey) -> TargetFinding | None:
        obj, news = self._targets.get(key), self._findings.get(key)
        if obj is None or not news:
            return None

        return TargetFinding(obj, news, cluster_identity.to_record(obj, self._cluster(key, obj)))

    def _cluster(self, key: TargetKey, obj: Object) -> str:
        """The UID of the cluster that the Target was last found to be, "" if it is not known."""
        uid, cluster = self._clusters.get(key, ("", ""))
        return cluster if uid == objects.uid(obj) else ""

    def _expected(self, key: TargetKey) -> Expected:
        obj = self._targets.get(key)
        return cluster_identity.expected(obj, self._cluster(key, obj)) if obj else Expected()

    def _on_cluster(self, key: TargetKey, cluster: str) -> None:
        if (obj := self._targets.get(key)) is not None:
            self._clusters[key] = objects.uid(obj), cluster
            self._found.call(key)

    async def run(self) -> None:
        """Connect to all targets until cancelled."""
        for informer in self._targets.informers:
            informer.subscribe(self._on_target)

        self._links.subscribe(
            lambda link: link.on_health(lambda: self._controller.add(link.target)),
            lambda _link: None,
        )
        async with supervise() as tasks:
            self._tasks = tasks.keyed(self._hear, self._clock)
            self._secrets = Secrets(self._local, tasks.keyed(), self._controller.add)
            await self._controller.run()

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is not None:
            self._controller.add(model.key_of(obj))

    async def _reconcile(self, key: TargetKey) -> float | None:
        obj = self._targets.get(key)
        with logs.context(target=str(key)):
            if obj is None:
                return await self._forget(key)

            self._gone.pop(key, None)
            try:
                spec = model.parse(obj)
                endpoint, print_, end = await self._endpoint(spec)
            except ConfigError as error:
                await self._stop(key)
                self._say(key, obj, "Invalid", str(error))
                return None
            except Unreachable as error:
                self._say(key, obj, "SecretUnreadable", str(error))
                return _RESTART
            except Exception as error:
                self._say(key, obj, "Failing", explain(error))
                raise

            await self._ensure(spec, endpoint, print_)
            self._look_again(key)
            self._judge(key, obj, end)
            return expiry.look_again(end, self._clock.now())

    async def _forget(self, key: TargetKey) -> float | None:
        """The object is gone: the connection ends, after its farewell if that is ours to say.

        A replica that does not lead keeps it for a while: it may have to say the farewell yet.
        """
        self._findings.pop(key, None)
        self._found.call(key)
        running = self._running.get(key)
        if running and self._is_active(key):
            if self._leading:
                running.connection.leave()  # its end brings us here again
                return None

            now = self._clock.monotonic()
            left = self._gone.setdefault(key, now) + _LINGER - now
            if left > 0:
                return left

        self._gone.pop(key, None)
        self._clusters.pop(key, None)
        await self._stop(key)
        if self._secrets is not None:
            self._secrets.use(key, None)

        return None

    async def _endpoint(self, spec: TargetSpec) -> tuple[Endpoint, str, CredentialExpiry | None]:
        """Where the target is, what that was made from, and when its credentials end."""
        assert self._secrets is not None, "reconciled outside run"
        self._secrets.use(spec.key, spec.secret)
        if spec.secret is None:
            return self._local.endpoint, fingerprint(spec, b""), None

        kubeconfig = await self._secrets.kubeconfig(spec.secret)
        endpoint = endpoints.from_kubeconfig(
            kubeconfig, spec.secret.context or None, trust=self._trust
        )
        end = expiry.of_kubeconfig(kubeconfig, spec.secret.context)
        return endpoint, fingerprint(spec, kubeconfig), end

    async def _ensure(self, spec: TargetSpec, endpoint: Endpoint, print_: str) -> None:
        known = self._running.get(spec.key)
        if known and known.print == print_ and not known.connection.leaving:
            return

        await self._start(spec, endpoint, print_)

    async def _start(self, spec: TargetSpec, endpoint: Endpoint, print_: str) -> None:
        """Connect anew, in the place of the connection that there was."""
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
        self._running[spec.key] = _Running(print_, connection)
        self._tasks.start(spec.key, partial(_run, connection), f"target-{spec.key}")

    def _is_active(self, key: TargetKey) -> bool:
        return self._tasks is not None and self._tasks.is_active(key)

    def _look_again(self, key: TargetKey) -> None:
        """Another cluster answers: has it been confirmed?"""
        link = self._links.get(key.node_name)
        if link is not None and link.health.reason in cluster_identity.REFUSED:
            self._running[key].connection.look_again()

    def _hear(self, key: TargetKey, _name: str, error: Exception | None) -> None:
        """A connection failed, works again, or has ended."""
        if error is not None and (running := self._running.get(key)):
            running.connection.failure = explain(error)

        self._controller.add(key)

    async def _stop(self, key: TargetKey) -> None:
        if self._running.pop(key, None) and self._tasks is not None:
            await self._tasks.end(key)

    def _judge(self, key: TargetKey, obj: Object, end: CredentialExpiry | None) -> None:
        """What the connection has found; nothing that it has not looked at yet."""
        link, connection = self._links.get(key.node_name), self._running[key].connection
        if link is None and connection.failure:
            self._say(key, obj, "Failing", connection.failure)

        if link is None or link.health.reason == CONNECTING:
            return

        health, now = link.health, self._clock.now()
        verdict = (health.healthy, health.reason, health.message)
        if health.healthy and link.failure:
            verdict = (False, "Failing", link.failure)

        news = [ready(obj, *verdict, now)]
        if (credentials := expiry.condition(obj, end, now)) is not None:
            news.append(credentials)

        others = connection.name_conflicts.clusters
        if link.synced and (others or objects.condition(obj, conditions.CLUSTER_NAME_UNIQUE)):
            holds, reason, message = name_conflicts.explain(self._identity.name, others)
            type_ = conditions.CLUSTER_NAME_UNIQUE
            news.append(conditions.build(obj, type_, holds, reason, message, now))

        self._find(key, news)

    def _say(self, key: TargetKey, obj: Object, reason: str, message: str) -> None:
        """Why there is no connection."""
        self._find(key, [ready(obj, False, reason, message, self._clock.now())])

    def _find(self, key: TargetKey, news: Objects) -> None:
        self._findings[key] = news
        self._found.call(key)


async def _run(connection: Connection) -> None:
    """One that fails while it leaves is not tried again: others collect what it left."""
    if not connection.leaving:
        await connection.run()
