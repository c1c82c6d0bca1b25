"""Targets and ClusterTargets -> connections, changed one at a time while the others run on.

A Target, or the Secret that it names, changes; its key is reconciled: the object is checked, the
kubeconfig read, and if anything that matters is different, the old connection ends and a new one
starts. What is wrong is written into the object's Ready condition, with the cure.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, NotFound
from vnode.api.objects import Object
from vnode.kube import endpoint as endpoints
from vnode.kube.client import Client
from vnode.kube.endpoint import Endpoint, Trust
from vnode.kube.informer import Informer
from vnode.runtime.controller import Controller
from vnode.runtime.links import Links, TargetKey
from vnode.targets import model
from vnode.targets.conditions import merged, ready
from vnode.targets.connection import Connection, Identity, fingerprint
from vnode.targets.model import SecretReference, TargetSpec
from vnode.telemetry import logs

_RESTART: Final = 5.0  # seconds before a connection that failed unexpectedly is made again

log = logging.getLogger(__name__)


class TargetController:
    """Keeps `links` in step with the Targets of the local cluster."""

    def __init__(
        self,
        local: Client,
        identity: Identity,
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
        self._targets = Informer(local, kinds.TARGETS)
        self._cluster_targets = Informer(local, kinds.CLUSTER_TARGETS)
        self._controller: Controller[TargetKey] = Controller("targets", self._reconcile, workers=4)
        # A key has an entry here iff its connection runs: (fingerprint, connection, its task).
        self._running: dict[TargetKey, tuple[str, Connection, asyncio.Task[None]]] = {}
        # By `namespace/name`: the informer of one Secret, and its task.
        self._secrets: dict[str, tuple[Informer, asyncio.Task[None]]] = {}
        self._references: dict[TargetKey, SecretReference] = {}  # the Secrets that are in use
        self._group: asyncio.TaskGroup | None = None  # set while `run` runs

    @property
    def synced(self) -> bool:
        """All Targets are known; before that, an absent one means nothing."""
        return self._targets.synced.is_set() and self._cluster_targets.synced.is_set()

    async def wait_synced(self) -> None:
        """Return once all Targets are known."""
        await self._targets.synced.wait()
        await self._cluster_targets.synced.wait()

    def keys(self) -> set[TargetKey]:
        """Every Target and ClusterTarget that exists, working or not."""
        return {
            model.key_of(obj)
            for informer in (self._targets, self._cluster_targets)
            for obj in informer.store.values()
        }

    def finalizers(self, namespace: str) -> list[str]:
        """The finalizers that a proxy pod of that namespace carries, in a stable order."""
        covering = [key for key in self.keys() if key.namespace in ("", namespace)]
        return [key.finalizer for key in sorted(covering, key=str)]

    def subscribe_keys(self, changed: asyncio.Event) -> None:
        """Set `changed` whenever a Target comes or goes."""
        for informer in (self._targets, self._cluster_targets):
            informer.subscribe(lambda old, new: changed.set() if not (old and new) else None)

    async def watch_targets(self) -> None:
        """Follow the Target objects; runs in every replica, `run` in the leader only."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._targets.run(), name="targets")
            group.create_task(self._cluster_targets.run(), name="clustertargets")

    async def run(self) -> None:
        """Connect to all targets until cancelled."""
        for informer in (self._targets, self._cluster_targets):
            informer.subscribe(self._on_target)

        self._links.subscribe(
            lambda link: link.on_health(lambda: self._controller.add(link.target)),
            lambda _link: None,
        )
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                group.create_task(self._controller.run(), name="targets-controller")
        finally:
            self._group = None

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        obj = new or old
        if obj is not None:
            self._controller.add(model.key_of(obj))

    def _object(self, key: TargetKey) -> Object | None:
        informer = self._targets if key.namespace else self._cluster_targets
        return informer.store.get(str(key))

    async def _reconcile(self, key: TargetKey) -> float | None:
        obj = self._object(key)
        if obj is None:
            await self._stop(key)
            self._use_secret(key, None)
            return None

        with logs.context(target=str(key)):
            try:
                spec = model.parse(obj)
                endpoint, print_ = await self._endpoint(spec)
            except ConfigError as error:
                await self._stop(key)
                await self._report(key, obj, healthy=False, reason="Invalid", message=str(error))
                return None

            await self._ensure(spec, endpoint, print_)
            await self._report_health(key, obj)
            return None

    async def _endpoint(self, spec: TargetSpec) -> tuple[Endpoint, str]:
        self._use_secret(spec.key, spec.secret)
        if spec.secret is None:
            return self._local.endpoint, fingerprint(spec, b"")

        informer, _task = self._secrets[spec.secret.object_key]
        await informer.synced.wait()
        kubeconfig = _kubeconfig(informer.store.get(spec.secret.object_key), spec.secret)
        endpoint = endpoints.from_kubeconfig(
            kubeconfig, spec.secret.context or None, trust=self._trust
        )
        return endpoint, fingerprint(spec, kubeconfig)

    async def _ensure(self, spec: TargetSpec, endpoint: Endpoint, print_: str) -> None:
        known = self._running.get(spec.key)
        if known and known[0] == print_ and not known[2].done():
            return

        await self._stop(spec.key)
        assert self._group is not None, "reconciled outside run"
        connection = Connection(
            spec, endpoint, identity=self._identity, links=self._links, clock=self._clock
        )
        task = self._group.create_task(self._guard(connection), name=f"target-{spec.key}")
        self._running[spec.key] = (print_, connection, task)

    async def _guard(self, connection: Connection) -> None:
        """One target's bug is not another's outage."""
        try:
            await connection.run()
        except Exception:
            log.exception("the connection to %s failed", connection.spec.key)
            self._controller.add_after(connection.spec.key, _RESTART)

    async def _stop(self, key: TargetKey) -> None:
        known = self._running.pop(key, None)
        if known:
            known[2].cancel()
            await asyncio.wait([known[2]])

    def _use_secret(self, key: TargetKey, reference: SecretReference | None) -> None:
        """Watch the Secret that a target names now; no longer the one that it named before."""
        before = self._references.pop(key, None)
        if reference is not None:
            self._references[key] = reference
            self._watch_secret(reference)

        used = {other.object_key for other in self._references.values()}
        if before is not None and before.object_key not in used:
            _informer, task = self._secrets.pop(before.object_key)
            task.cancel()

    def _watch_secret(self, reference: SecretReference) -> None:
        if reference.object_key in self._secrets:
            return

        assert self._group is not None, "reconciled outside run"
        informer = Informer(
            self._local,
            kinds.SECRETS,
            namespace=reference.namespace,
            field_selector=f"metadata.name={reference.name}",
        )
        informer.subscribe(lambda _old, _new: self._on_secret(reference.object_key))
        task = self._group.create_task(informer.run(), name=f"secret-{reference.object_key}")
        self._secrets[reference.object_key] = (informer, task)

    def _on_secret(self, object_key: str) -> None:
        for key, reference in self._references.items():
            if reference.object_key == object_key:
                self._controller.add(key)

    async def _report_health(self, key: TargetKey, obj: Object) -> None:
        link = self._links.get(key.node_name)
        if link is not None:
            health = link.health
            await self._report(
                key, obj, healthy=health.healthy, reason=health.reason, message=health.message
            )

    async def _report(
        self, key: TargetKey, obj: Object, *, healthy: bool, reason: str, message: str
    ) -> None:
        condition = ready(obj, healthy, reason, message, self._clock.now())
        conditions = merged(obj, condition)
        if conditions is None:
            return

        log.info("%s is %s: %s", key, reason, message)
        kind = kinds.TARGETS if key.namespace else kinds.CLUSTER_TARGETS
        body = {"status": {"conditions": conditions}, "metadata": {"uid": objects.uid(obj)}}
        try:
            await self._local.patch(
                kind, key.name, body, key.namespace or None, subresource="status"
            )
        except NotFound:
            log.debug("%s is gone", key)


def _kubeconfig(secret: Object | None, reference: SecretReference) -> bytes:
    if secret is None:
        raise ConfigError(
            f"there is no Secret {reference.name!r} in namespace {reference.namespace!r}: create "
            "it with the target's kubeconfig (vnode connect does)"
        )

    data = secret.get("data") or {}
    if reference.key not in data:
        present = ", ".join(sorted(data)) or "nothing"
        raise ConfigError(
            f"Secret {reference.name!r} has no key {reference.key!r} but {present}: set "
            "spec.kubeconfigSecret.key, or add the key"
        )

    try:
        return base64.b64decode(data[reference.key], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ConfigError(f"key {reference.key!r} of the Secret is not base64") from error
