"""Carries out AuthTokenRequests: makes, renews and revokes tokens in the clusters behind Targets.

One for each term of a leader. A request, its Secret or its Target changes, its namespace ends, or
its token is due: then its key is reconciled (`reconciler`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vnode.api import keys, kinds, objects
from vnode.api.authors import RecordedAuthors
from vnode.api.clock import Clock
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.issuing import request as requests
from vnode.issuing.attempt import IssuePlace
from vnode.issuing.reconciler import RequestReconciler
from vnode.issuing.request_targets import CLUSTER_INDEX, RequestTargets
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.runtime.controller import Controller
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets import token_renewal
from vnode.targets.target_lister import TargetLister
from vnode.telemetry import audit


class TokenIssuing:
    """Issues tokens; `chance` (0 to 1, by token) spreads renewals."""

    def __init__(
        self,
        local: Client,
        links: Links,
        targets: TargetLister,
        authors: RecordedAuthors,
        namespaces: Informer,
        events: EventRecorder,
        *,
        longest: int,
        clock: Clock,
        chance: Callable[[str], float] = token_renewal.chance,
    ) -> None:
        self._local = local
        self._links = links
        self._targets = targets
        self._authors = authors
        self._namespaces = namespaces
        self._requests = Informer(
            local,
            kinds.AUTH_TOKEN_REQUESTS,
            optional=True,
            indexes={CLUSTER_INDEX: requests.cluster_index},
        )
        self._secrets = Informer(local, kinds.SECRETS, label_selector=keys.ISSUED)
        self._request_targets = RequestTargets(self._requests, targets, links, longest)
        self._reconciler = RequestReconciler(
            local,
            self._requests,
            self._secrets,
            namespaces,
            self._request_targets,
            authors,
            events,
            self._wake,
            longest=longest,
            clock=clock,
            chance=chance,
        )
        self._controller: Controller[str] = Controller(
            "issued-tokens",
            self._reconciler.reconcile,
            subject=self._subject,
            workers=2,
            lane=objects.key_namespace,
            namespace=objects.key_namespace,
            total=8,
        )

    async def run(self) -> None:
        """Issue until cancelled; Targets must be known. Without the CRD there are no requests."""
        self._requests.subscribe_by_key(self._controller.add)
        self._secrets.subscribe_by_key(self._controller.add)
        for informer in self._targets.informers:
            informer.subscribe(self._on_target)

        self._links.subscribe(self._on_link, lambda link: self._wake_of(link.target))
        self._namespaces.subscribe(self._on_namespace)
        try:
            with self._reconciler.metrics.shown():
                await self._work()
        finally:
            self._request_targets.close()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._requests.run(), name="authtokenrequests")
            group.create_task(self._secrets.run(), name="issued-secrets")
            await self._secrets.synced.wait()  # else there would seem to be no tokens
            group.create_task(self._controller.run(), name="issue-tokens")

    def _wake(self, key: str) -> None:
        self._controller.add(key)

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        """Try the requests for a Target that has come or gone."""
        if old is None or new is None:
            self._retry(self._request_targets.requests_for(objects.latest(old, new)))

    def _on_link(self, link: Link) -> None:
        link.on_health(lambda: self._on_health(link))
        self._wake_of(link.target)

    def _on_health(self, link: Link) -> None:
        self._request_targets.hold(link)
        if IssuePlace(True, link).answering is not None:
            self._wake_of(link.target)

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        """Look at the requests of a namespace that ends: what they were given goes before them."""
        name = objects.name(objects.latest(old, new))
        if self._reconciler.is_ending(name):
            for obj in self._requests.store.values():
                if objects.namespace(obj) == name:
                    self._controller.add(objects.key(obj))

    def _wake_of(self, target: TargetKey) -> None:
        """Try the requests for a Target at once, which may be gone."""
        self._retry(self._request_targets.requests_of(target))

    def _retry(self, found: Objects) -> None:
        for key in map(objects.key, found):
            self._reconciler.retry(key)
            self._controller.add(key)

    def _subject(self, key: str) -> audit.Subject:
        obj = self._requests.store.get(key) or {}
        author = self._authors.author(obj)
        name = author.username if author else ""
        return audit.subject(kinds.AUTH_TOKEN_REQUESTS, key, obj, author=name)
