"""Brings one AuthTokenRequest to what it asks for: a token that is made, renewed, or revoked.

What the request needs is made in the target step by step, by the Target's own client, and the token
is put into the request's Secret. A step that fails is a condition, and is tried again after 10 s,
doubling to 5 min; the old token stays until there is a new one.
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
from vnode.api.objects import Object
from vnode.issuing import request as requests
from vnode.issuing import steps, token_secret
from vnode.issuing.attempt import NOWHERE, IssueAttempt, IssueGrant, IssuePlace
from vnode.issuing.ending import RequestEnding
from vnode.issuing.request import IssueSpec
from vnode.issuing.request_targets import RequestTargets
from vnode.issuing.state import IssueState
from vnode.issuing.steps import IssueProgress, IssueStep, StepFailed
from vnode.issuing.token_metrics import TokenMetrics
from vnode.issuing.token_secret import TokenPlace
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder
from vnode.kube.informer import Informer
from vnode.runtime.expectations import Expectations
from vnode.runtime.link import Link
from vnode.targets.token_renewal import ManagedToken

_LIMIT: Final = 60.0  # seconds for one attempt
_RETRY_EARLY: Final = 1.0  # seconds until a link that leaves is tried again
_RIGHTS: Final = 30.0  # seconds until rights in a namespace are looked for again

log = logging.getLogger(__name__)


class RequestReconciler:
    """Issues, renews and revokes the token of one request at a time.

    `wake` has a request reconciled again; `chance` (0 to 1, by token) spreads renewals.
    """

    def __init__(
        self,
        local: Client,
        requests_: Informer,
        secrets: Informer,
        namespaces: Informer,
        targets: RequestTargets,
        authors: RecordedAuthors,
        events: EventRecorder,
        wake: Callable[[str], None],
        *,
        longest: int,
        clock: Clock,
        chance: Callable[[str], float],
    ) -> None:
        self._local = local
        self._requests = requests_
        self._secrets = secrets
        self._namespaces = namespaces
        self._targets = targets
        self._authors = authors
        self._events = events
        self._longest = longest
        self._clock = clock
        self._chance = chance
        self.metrics = TokenMetrics()
        self._states: dict[str, IssueState] = {}  # of requests that exist
        self._written = Expectations(wake)
        self._secrets_written = Expectations(wake)

    def retry(self, key: str) -> None:
        """Have the next attempt of a request made at once, whatever it waits for."""
        if state := self._states.get(key):
            state.retry_now()

    def is_ending(self, namespace: str) -> bool:
        """Tell whether a namespace is being deleted."""
        return objects.is_terminating(self._namespaces.store.get(namespace) or {})

    async def reconcile(self, key: str) -> float | None:
        """Bring a request to what it asks for; return the seconds after which to look again."""
        obj = self._requests.store.get(key)
        if obj is None:
            self._states.pop(key, None)
            self._targets.forget(key)
            self.metrics.note_end(key, None)
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
        place = self._targets.place(obj)
        if objects.is_terminating(obj):
            return await self._end(obj, spec, place, state)

        if state.revoked:
            return None

        if place.link is not None and place.link.leaves and self.is_ending(objects.namespace(obj)):
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

        self.metrics.note_end(key, token.ends if token else None)
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
                self.metrics.count("issued" if token is None else "renewed")

            return grant.token

        self.metrics.count("failed")
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
        self.metrics.note_end(objects.key(obj), None)
        namespace = objects.namespace(obj)
        ending = RequestEnding(self._local, self._written)
        if not state.revoked and place == NOWHERE and self.is_ending(namespace):
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

        self.metrics.count("revoked" if failure is None else "failed")
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
