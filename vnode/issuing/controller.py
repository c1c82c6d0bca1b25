"""Carries out AuthTokenRequests: makes, renews and revokes tokens in the clusters behind Targets.

One for each term of a leader. A request, its Secret or its Target changes, or its token is due; its
key is reconciled: what the request needs is made in the target step by step, by the Target's own
client, and the token is put into the request's Secret. A step that fails is a condition, and is
tried again after 10 s, doubling to 5 min; the old token stays until there is a new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.authors import RecordedAuthors
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import Conflict
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.issuing import request as requests
from vnode.issuing import steps, token_secret
from vnode.issuing.attempt import NOWHERE, IssueAttempt, IssueGrant, IssuePlace
from vnode.issuing.ending import RequestEnding
from vnode.issuing.leaving import LeavingLinks
from vnode.issuing.request import IssueSpec
from vnode.issuing.request_targets import CLUSTER_INDEX, RequestTargets
from vnode.issuing.state import IssueState
from vnode.issuing.steps import IssueProgress, IssueStep, StepFailed
from vnode.issuing.token_metrics import TokenMetrics
from vnode.issuing.token_secret import TokenPlace
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder
from vnode.kube.informer import Informer
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.targets import token_renewal
from vnode.targets.target_lister import TargetLister
from vnode.targets.token_renewal import ManagedToken
from vnode.telemetry import audit

_LIMIT: Final = 60.0  # seconds for one attempt
_RETRY_EARLY: Final = 1.0  # seconds until a link that leaves is tried again
_RIGHTS: Final = 30.0  # seconds until rights in a namespace are looked for again

log = logging.getLogger(__name__)


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
        self._events = events
        self._leaving = LeavingLinks()
        self._longest = longest
        self._clock = clock
        self._chance = chance
        self._requests = Informer(
            local,
            kinds.AUTH_TOKEN_REQUESTS,
            optional=True,
            indexes={CLUSTER_INDEX: requests.cluster_index},
        )
        self._secrets = Informer(local, kinds.SECRETS, label_selector=keys.ISSUED)
        self._metrics = TokenMetrics()
        self._states: dict[str, IssueState] = {}  # of requests that exist
        self._request_targets = RequestTargets(self._requests, targets, self._states, longest)
        self._controller: Controller[str] = Controller(
            "issued-tokens",
            self._reconcile,
            subject=self._subject,
            workers=2,
            lane=objects.key_namespace,
            namespace=objects.key_namespace,
            total=8,
        )
        self._written = Expectations(self._controller.add)
        self._secrets_written = Expectations(self._controller.add)

    async def run(self) -> None:
        """Issue until cancelled; Targets must be known. Without the CRD there are no requests."""
        self._requests.subscribe_by_key(self._controller.add)
        self._secrets.subscribe_by_key(self._controller.add)
        for informer in self._targets.informers:
            informer.subscribe(self._on_target)

        self._links.subscribe(self._on_link, lambda link: self._wake_of(link.target))
        self._namespaces.subscribe(self._on_namespace)
        try:
            with self._metrics.shown():
                await self._work()
        finally:
            self._leaving.close()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._requests.run(), name="authtokenrequests")
            group.create_task(self._secrets.run(), name="issued-secrets")
            await self._secrets.synced.wait()  # else there would seem to be no tokens
            group.create_task(self._controller.run(), name="issue-tokens")

    def _on_target(self, old: Object | None, new: Object | None) -> None:
        """Try the requests for a Target that has come or gone."""
        if old is None or new is None:
            self._retry(self._request_targets.requests_for(objects.latest(old, new)))

    def _on_link(self, link: Link) -> None:
        link.on_health(lambda: self._on_health(link))
        self._wake_of(link.target)

    def _on_health(self, link: Link) -> None:
        if link.leaves and self._request_targets.are_any_for(
            self._request_targets.requests_of(link.target), link.node_name
        ):
            self._leaving.hold(link)

        if IssuePlace(True, link).answering is not None:
            self._wake_of(link.target)

    def _on_namespace(self, old: Object | None, new: Object | None) -> None:
        """Look at the requests of a namespace that ends: what they were given goes before them."""
        name = objects.name(objects.latest(old, new))
        if self._is_ending(name):
            for obj in self._requests.store.values():
                if objects.namespace(obj) == name:
                    self._controller.add(objects.key(obj))

    def _is_ending(self, namespace: str) -> bool:
        return objects.is_terminating(self._namespaces.store.get(namespace) or {})

    def _wake_of(self, target: TargetKey) -> None:
        """Try the requests for a Target at once, which may be gone."""
        self._retry(self._request_targets.requests_of(target))

    def _retry(self, found: Objects) -> None:
        for key in map(objects.key, found):
            if state := self._states.get(key):
                state.retry_now()

            self._controller.add(key)

    def _subject(self, key: str) -> audit.Subject:
        obj = self._requests.store.get(key) or {}
        author = self._authors.author(obj)
        name = author.username if author else ""
        return audit.subject(kinds.AUTH_TOKEN_REQUESTS, key, obj, author=name)

    def _place(self, obj: Object, state: IssueState) -> IssuePlace:
        node = self._request_targets.node_of(obj)
        state.node = self._request_targets.last_node(obj) if node is None else node
        self._request_targets.note(objects.key(obj), state.node)
        link = self._links.get(state.node) or self._leaving.get(state.node)
        return IssuePlace(node is not None, link)

    async def _reconcile(self, key: str) -> float | None:
        obj = self._requests.store.get(key)
        if obj is None:
            self._states.pop(key, None)
            self._request_targets.note(key, "")
            self._metrics.note_end(key, None)
            self._written.forget(key)
            self._secrets_written.forget(key)
            return None

        if self._written.pending(key, obj):
            return None  # the event of our last write wakes this key

        if self._secrets.lacks(objects.namespace(obj)):
            return _RIGHTS  # there would seem to be no token

        state = self._states.get(key)
        if state is None or state.uid != objects.uid(obj):
            state = self._states[key] = IssueState(objects.uid(obj), self._clock, self._chance)

        spec = requests.decode(obj, self._longest)
        place = self._place(obj, state)
        if objects.is_terminating(obj):
            return await self._end(obj, spec, place, state)

        if state.revoked:
            return None

        if place.link is not None and place.link.leaves and self._is_ending(objects.namespace(obj)):
            return await self._revoke_early(obj, spec, place, state)

        return await self._keep(key, obj, spec, place, state)

    async def _keep(
        self, key: str, obj: Object, spec: IssueSpec, place: IssuePlace, state: IssueState
    ) -> float | None:
        """Have a request's token exist, and its status say so."""
        progress = IssueProgress()
        secret = self._secret(key, obj, state)
        token = token_secret.stored_token(secret, spec) if secret is not None else None
        if token is not None and self._is_current(secret, spec, place.link, state, token):
            state.failures = 0
        elif not state.wait:
            token = await self._attempt(obj, spec, place, state, progress, token)

        self._metrics.note_end(key, token.ends if token else None)
        if token is not None:
            progress.ends, progress.renew_at = token.ends, state.due(token)
            progress.note_end(self._clock.now())

        await self._write(obj, progress)
        return state.next_look(token)

    def _secret(self, key: str, obj: Object, state: IssueState) -> Object | None:
        """Return the Secret of a request, as it is after our last write; None if there is none."""
        found = self._secrets.store.get(key)
        if self._secrets_written.pending(key, found or {}):
            return state.secret

        return found if found is not None and token_secret.is_of(found, obj) else None

    def _is_current(
        self,
        secret: Object | None,
        spec: IssueSpec,
        link: Link | None,
        state: IssueState,
        token: ManagedToken,
    ) -> bool:
        """Tell whether all was done with this target, and the Secret is what it has to be."""
        if link is None or state.link is not link or secret is None or state.is_due(token):
            return False

        place = TokenPlace.of(link.client.endpoint, link.cluster_uid or "")
        wanted = token_secret.data(place, spec, token.text)
        return (
            token_secret.token_of(secret, place, spec) is not None and secret.get("data") == wanted
        )

    async def _attempt(
        self,
        obj: Object,
        spec: IssueSpec,
        place: IssuePlace,
        state: IssueState,
        progress: IssueProgress,
        token: ManagedToken | None,
    ) -> ManagedToken | None:
        """Go all steps; return the token that the Secret has now: `token` if a step has failed."""
        attempt = IssueAttempt(self._local, self._authors, self._clock, self._written)
        try:
            async with asyncio.timeout(_LIMIT):
                grant = await attempt.run(obj, spec, place, progress, state.is_due)
        except TimeoutError:
            step = next(each for each in IssueStep if each.value not in progress.outcomes)
            failure = StepFailed(step, "TargetUnreachable", f"no answer within {_LIMIT:.0f} s")
        except StepFailed as error:
            failure = error
        else:
            self._succeeded(objects.key(obj), state, grant, place.link)
            if grant.is_new:
                self._metrics.count("issued" if token is None else "renewed")

            return grant.token

        self._metrics.count("failed")
        progress.failed(failure)
        wait = state.failed(token)
        log.info(
            "authtokenrequest/%s: next attempt in %.0f s: %s: %s",
            objects.key(obj),
            wait,
            failure.reason,
            failure,
        )
        return token

    def _succeeded(self, key: str, state: IssueState, grant: IssueGrant, link: Link | None) -> None:
        state.failures, state.link = 0, link
        if grant.after is None:
            return

        state.secret = grant.after
        self._secrets_written.expect(key, grant.before or {}, grant.after)
        if grant.is_new:
            state.issued(grant.token)
            log.info("authtokenrequest/%s: issued a token until %s", key, grant.token.ends)

    async def _write(self, obj: Object, progress: IssueProgress) -> None:
        news = steps.changed_status(obj, progress, self._clock.now())
        if news:
            body = objects.status_patch(obj, news)
            await self._written.patch(
                self._local, kinds.AUTH_TOKEN_REQUESTS, obj, body, subresource="status"
            )

    async def _end(
        self, obj: Object, spec: IssueSpec, place: IssuePlace, state: IssueState
    ) -> float | None:
        """Revoke what a request that is being deleted was given, then let it go."""
        if keys.ISSUED_TOKEN not in objects.finalizers(obj):
            return None

        state.begin_end()
        self._metrics.note_end(objects.key(obj), None)
        namespace = objects.namespace(obj)
        ending = RequestEnding(self._local, self._written)
        if not state.revoked and place == NOWHERE and self._is_ending(namespace):
            self._tell_of_rest(obj, spec)
            state.revoked = True

        if state.wait and not state.revoked:
            return state.wait

        try:
            async with asyncio.timeout(_LIMIT):
                failure = await ending.run(obj, spec, place, revoked=state.revoked)
        except TimeoutError:
            failure = "TargetUnreachable", f"no answer within {_LIMIT:.0f} s"
        except Conflict:
            return TICK  # decided from an older state

        self._metrics.count("revoked" if failure is None else "failed")
        if failure is None:
            log.info("authtokenrequest/%s: revoked", objects.key(obj))
            return None

        progress = IssueProgress()
        progress.outcomes[steps.REVOKED] = (False, *failure)
        wait = state.failed()
        await self._write(obj, progress)
        return wait

    async def _revoke_early(
        self, obj: Object, spec: IssueSpec, place: IssuePlace, state: IssueState
    ) -> float | None:
        """Revoke what a request was given whose namespace ends, while its Target still has a link:
        the request will go as well, and when is up to chance."""
        state.begin_end()
        failure = await RequestEnding(self._local, self._written).revoke(obj, spec, place)
        if failure is not None:
            log.info("authtokenrequest/%s: not revoked yet: %s", objects.key(obj), failure[1])
            return _RETRY_EARLY

        state.revoked = True
        log.info("authtokenrequest/%s: revoked, as its namespace ends", objects.key(obj))
        return None

    def _tell_of_rest(self, obj: Object, spec: IssueSpec) -> None:
        """Tell that a request goes though its rights stay: its Target is gone, and the namespace
        must be able to end. No Event can be made in that namespace any more."""
        namespace, account = spec.account
        text = (
            f"authtokenrequest/{objects.key(obj)} is let go, and not revoked: {spec.cluster} is "
            f"gone; in its cluster delete service account {namespace}/{account}, and what has the "
            f"label {keys.ISSUED}={spec.uid}"
        )
        log.warning("%s", text)
        found = self._namespaces.store.get(objects.namespace(obj)) or {}
        about = objects.reference(found, kinds.NAMESPACES.kind, kinds.NAMESPACES.api_version)
        self._events.event(about, WARNING, "TokenNotRevoked", text)
