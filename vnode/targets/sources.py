"""Keeps service accounts and bindings in this, the target, cluster as Sources and ClusterSources
ask.

A Source, or an object made for one, changes; its key is reconciled: the wanted objects are built
from the Source, compared with the present ones, and corrected. A ClusterSource that selects
namespaces is reconciled with each namespace that comes, goes or changes its labels. A binding whose
Source is deleted, or has no subject any more, is deleted, but only once all Sources have been
listed. A problem goes into the Source's Ready condition, with the cure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from vnode.api import cures, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import AlreadyExists, ApiError, ConfigError, Denied, Invalid, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.status_conditions import merged
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.noted_changes import NotedChanges, is_of_users
from vnode.targets import source_rbac
from vnode.targets.conditions import ready
from vnode.targets.source_grants import SourceGrants
from vnode.targets.source_rbac import Grant
from vnode.telemetry import audit

_ACCOUNT: Final = "account"
_ACCOUNT_NAMESPACE: Final = "account-namespace"
_SOURCE: Final = "source"
_NAMED: Final = 10  # namespaces in a message

log = logging.getLogger(__name__)


class SourceController:
    """Gives source clusters the rights that Sources and ClusterSources ask for.

    `run` works until cancelled; only the leader runs it. `synced` is set once everything has been
    listed. `namespaces` is an informer that the caller runs; `own_namespace` is the agents' own,
    which no selector gives away. `grants` are kept up to date.
    """

    def __init__(
        self,
        client: Client,
        namespaces: Informer,
        own_namespace: str,
        *,
        clock: Clock,
        grants: SourceGrants | None = None,
    ) -> None:
        self.synced = asyncio.Event()
        self._client = client
        self._namespaces = namespaces
        self._own_namespace = own_namespace
        self._clock = clock
        self._grants = grants or SourceGrants()
        self._controller: Controller[str] = Controller(
            "sources",
            self._reconcile,
            subject=self._subject,
            workers=2,
            lane=objects.key_namespace,
            total=8,
        )
        self._changes: NotedChanges[str] = NotedChanges(
            "changes of sources",
            "sources",
            (write_limits.SOURCE_CHANGES, write_limits.SOURCE_CHANGES_OF_NAMESPACE),
            clock,
            namespace=objects.key_namespace,
        )
        indexes = {
            _ACCOUNT: source_rbac.account_key,
            _ACCOUNT_NAMESPACE: source_rbac.account_namespace,
        }
        self._sources = Informer(client, kinds.SOURCES, indexes=indexes)
        self._cluster_sources = Informer(client, kinds.CLUSTER_SOURCES, indexes=indexes)
        self._accounts = Informer(client, kinds.SERVICE_ACCOUNTS, trim=_trim_account)
        self._bindings = {
            kind: Informer(
                client,
                kind,
                label_selector=f"{source_rbac.MADE_FOR_SOURCE}=true",
                indexes={_SOURCE: source_rbac.binding_source},
            )
            for kind in (kinds.ROLE_BINDINGS, kinds.CLUSTER_ROLE_BINDINGS)
        }

    @property
    def _informers(self) -> list[Informer]:
        return [self._sources, self._cluster_sources, self._accounts, *self._bindings.values()]

    async def run(self) -> None:
        """Reconcile until cancelled."""
        for informer in (self._sources, self._cluster_sources):
            informer.subscribe(self._on_source)
            informer.subscribe_by_key(self._controller.add)

        self._accounts.subscribe(self._on_account)
        self._namespaces.subscribe(self._on_namespace)
        for informer in self._bindings.values():
            informer.subscribe(self._grants.on_binding)
            informer.subscribe(self._on_binding)

        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run(), name=f"sources-{informer.kind.plural}")

            for informer in (*self._informers, self._namespaces):
                await informer.synced.wait()

            self.synced.set()
            await self._controller.run()

    def _on_source(self, old: Object | None, new: Object | None) -> None:
        if new is None or is_of_users(old, new):
            self._changes.note(objects.key(objects.latest(old, new)))

    def _on_account(self, old: Object | None, new: Object | None) -> None:
        """Wake the Sources of a service account that is created or deleted.

        A new namespace gets an account `default`, hence wakes all that have waited for it.
        """
        if old is not None and new is not None:
            return

        account = objects.latest(old, new)
        for informer in (self._sources, self._cluster_sources):
            for source in informer.store.by_index(_ACCOUNT, objects.key(account)):
                self._controller.add(objects.key(source))

            if old is None and objects.name(account) == "default":
                there = objects.namespace(account)
                for source in informer.store.by_index(_ACCOUNT_NAMESPACE, there):
                    if not _is_ready(source):
                        self._controller.add(objects.key(source))

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        """Wake the ClusterSources that select namespaces, if it may be selected otherwise now."""
        if _as_selected(old) != _as_selected(new):
            for source in self._cluster_sources.store.values():
                if source_rbac.selects_namespaces(source):
                    self._controller.add(objects.key(source))

    def _on_binding(self, old: Object | None, new: Object | None) -> None:
        for binding in (old, new):
            for key in source_rbac.binding_source(binding or {}):
                self._controller.add(key)

    def _source(self, key: str) -> Object | None:
        return self._sources.store.get(key) or self._cluster_sources.store.get(key)

    def _subject(self, key: str) -> audit.Subject:
        return audit.subject(
            kinds.scoped(kinds.SOURCES, objects.key_namespace(key)), key, self._source(key)
        )

    def _knows(self, key: str) -> bool:
        namespace = objects.key_namespace(key)
        return (self._sources if namespace else self._cluster_sources).knows(namespace)

    async def _reconcile(self, key: str) -> float | None:
        source = self._source(key)
        if source is None and not self._knows(key):
            return None  # it may be there

        if wait := self._changes.wait(key):
            return wait

        if source is None:
            self._changes.forget(key)

        try:
            grant = source_rbac.parse(source) if source else None
            selected = self._selected(grant) if grant else []
            await self._grant(key, grant, selected)
        except ConfigError as error:
            await self._report(source, healthy=False, reason="Invalid", message=str(error))
        except ApiError as error:
            reason, message = explain(error, source_rbac.parse(source) if source else None)
            await self._report(source, healthy=False, reason=reason, message=message)
            if reason != "NamespaceNotFound":
                raise
        else:
            reason, message = outcome(grant, selected)
            await self._report(source, healthy=reason == "Bound", reason=reason, message=message)

        return None

    def _selected(self, grant: Grant) -> list[str]:
        found = self._namespaces.store.values()
        return sorted(objects.name(n) for n in found if grant.holds_in(n, self._own_namespace))

    async def _grant(self, key: str, grant: Grant | None, selected: list[str]) -> None:
        """Create what is missing, correct what differs, then delete what is not wanted.

        One namespace that refuses its binding keeps no other from having one.
        """
        wanted = source_rbac.bindings(grant, selected) if grant else []
        held_to = self._client.scope.names
        if held_to and grant and not grant.namespace:
            raise ConfigError(
                "this gives rights in several namespaces, and the agent is held to "
                f"{', '.join(held_to)}: make a Source in each of those"
            )

        if grant and grant.account:
            await self._ensure_account(grant)

        failures: list[ApiError] = []
        for kind, binding in wanted:
            try:
                await self._ensure_binding(kind, binding)
            except ApiError as error:
                failures.append(error)

        names = {(kind.kind, objects.key(binding)) for kind, binding in wanted}
        for kind, informer in self._bindings.items():
            for binding in informer.store.by_index(_SOURCE, key):
                if (kind.kind, objects.key(binding)) not in names:
                    await self._delete(kind, binding)

        if failures:
            raise failures[0]

    async def _ensure_account(self, grant: Grant) -> None:
        account = source_rbac.service_account(grant)
        if objects.key(account) in self._accounts.store:
            return

        try:
            await self._client.create(kinds.SERVICE_ACCOUNTS, account)
        except AlreadyExists:
            log.debug("service account %s exists already", objects.key(account))
        else:
            log.info("created service account %s", objects.key(account))

    async def _ensure_binding(self, kind: Kind, wanted: Object) -> None:
        present = self._bindings[kind].store.get(objects.key(wanted))
        if present and source_rbac.is_as_wanted(present, wanted):
            return

        if present and not source_rbac.same_role(present, wanted):
            await self._delete(kind, present)

        try:
            await self._client.apply(kind, wanted)
        except Invalid:
            # A binding without our label, which we do not watch, has another role.
            await self._client.delete(kind, objects.name(wanted), objects.namespace(wanted) or None)
            await self._client.apply(kind, wanted)

        log.info("applied %s %s", kind.kind, objects.key(wanted))

    async def _delete(self, kind: Kind, binding: Object) -> None:
        try:
            await self._client.delete(
                kind,
                objects.name(binding),
                objects.namespace(binding) or None,
                uid=objects.uid(binding),
            )
        except NotFound:
            return

        log.info("deleted %s %s", kind.kind, objects.key(binding))

    async def _report(
        self, source: Object | None, *, healthy: bool, reason: str, message: str
    ) -> None:
        if source is None:
            return

        conditions = merged(source, ready(source, healthy, reason, message, self._clock.now()))
        if conditions is None:
            return

        namespace = objects.namespace(source)
        kind = kinds.scoped(kinds.SOURCES, namespace)
        body = objects.status_patch(
            source,
            {
                "conditions": conditions,
                "observedGeneration": objects.metadata(source).get("generation"),
            },
        )
        try:
            await self._client.patch(
                kind, objects.name(source), body, namespace, subresource="status"
            )
        except NotFound:
            log.debug("%s is gone", objects.key(source))


def outcome(grant: Grant | None, selected: Sequence[str] = ()) -> tuple[str, str]:
    """Return (reason, message) when everything that was asked for is in place."""
    if grant is None or not str(grant):
        return (
            "NoSubject",
            (
                "the spec names no subject: set userName, or a service account "
                "(serviceAccountName of a Source, serviceAccount of a ClusterSource); "
                "system:anonymous is whoever shows no credentials, and none"
            ),
        )

    if grant.selector is None:
        where = f"namespace {grant.namespace}" if grant.namespace else "all namespaces"
        return ("Bound", f"{grant} may run pods in {where}")

    if not selected:
        return (
            "NoNamespace",
            (
                f"{grant} may run pods nowhere: spec.namespaceSelector matches no namespace; label "
                "one, or change the selector. It never matches those of Kubernetes and vnode"
            ),
        )

    shown = ", ".join(selected[:_NAMED]) + (", ..." if len(selected) > _NAMED else "")
    plural = "namespace" if len(selected) == 1 else "namespaces"
    return ("Bound", f"{grant} may run pods in {len(selected)} {plural}: {shown}")


def explain(error: ApiError, grant: Grant | None) -> tuple[str, str]:
    """Return (reason, message with the cure) for an error of the API server."""
    if isinstance(error, NotFound) and grant and grant.account:
        return (
            "NamespaceNotFound",
            f"namespace {grant.account[0]!r} of the service account does not exist: create it",
        )

    if isinstance(error, Denied):
        is_policy = "ValidatingAdmissionPolicy" in error.message  # which names the cure itself
        cure = "" if is_policy else f"; {cures.REPAIR}"
        return "Forbidden", f"the agent may not do this: {error.message}{cure}"

    return ("Failing", f"the API server refuses: {error.message}")


def _is_ready(source: Object) -> bool:
    return (objects.condition(source, "Ready") or {}).get("status") == "True"


def _as_selected(namespace: Object | None) -> object:
    """Return what selectors depend on."""
    if namespace is None:
        return None

    return objects.labels(namespace), objects.is_terminating(namespace)


def _trim_account(account: Object) -> Object:
    """Keep only that it exists: clusters have thousands."""
    meta = objects.metadata(account)
    kept = ("name", "namespace", "uid", "resourceVersion")
    return {"metadata": {field: meta[field] for field in kept if field in meta}}
