"""Updates delegates by the record of changes on their chaperons.

A delegate takes a change in up to four requests, since resources, ephemeral containers and
conditions have subresources of their own; the last one, to the pod itself, also records what was
done. A refusal of the API server is remembered with its message, and tried again after a while or
when the source sends something else. So is an error that may pass, such as that of a webhook, once
it comes twice.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final

from vnode.api import changeable, keys, kinds, objects, pod_shape
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Conflict, Invalid, ServerError, TooManyRequests
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import changes
from vnode.runtime.expectations import Expectations

RETRY_DELAY: Final = 30.0  # seconds until a change that was refused is tried again


@dataclass(frozen=True, slots=True)
class _FailedUpdate:
    """The message of the API server that refused a record, and when to try it again."""

    record: str
    pod_uid: str
    message: str
    until: float  # monotonic


class DelegateUpdater:
    """Brings delegates up to date with their chaperons."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._expectations = Expectations()
        self._refusals: dict[str, _FailedUpdate] = {}  # by key of the delegate
        self._failing: set[str] = set()  # keys whose last update met an error that may pass

    def under_way(self, pod: Object) -> bool:
        """Return whether the store has yet to show our last change; its event comes then."""
        return self._expectations.pending(objects.key(pod), pod)

    def forget(self, key: str) -> None:
        """Drop what is known of a chaperon that is gone."""
        self._expectations.forget(key)
        self._refusals.pop(key, None)
        self._failing.discard(key)

    async def update(self, chaperon: Object, pod: Object) -> str | None:
        """Do what was not done yet; return the API server's messages if it refused some of it."""
        key = objects.key(pod)
        delta = changes.pending(chaperon, pod)
        if not delta:
            self._refusals.pop(key, None)
            return None

        if problem := changes.problem(chaperon):
            return problem

        sent = objects.annotations(chaperon).get(keys.SENT, "")
        known = self._refusals.get(key)
        if (
            known is not None
            and (known.record, known.pod_uid) == (sent, objects.uid(pod))
            and self._clock.monotonic() < known.until
        ):
            return known.message

        try:
            refusals = await self._carry_out(chaperon, pod, delta)
        except (ServerError, TooManyRequests) as error:
            if key not in self._failing:
                self._failing.add(key)
                raise

            refusals = [error.message]

        self._failing.discard(key)
        if not refusals:
            self._refusals.pop(key, None)
            return None

        message = "; ".join(refusals)
        until = self._clock.monotonic() + RETRY_DELAY
        self._refusals[key] = _FailedUpdate(sent, objects.uid(pod), message, until)
        return message

    async def _carry_out(self, chaperon: Object, pod: Object, delta: Object) -> list[str]:
        """Do all parts, each by itself; refused ones stay out of the delegate's record.

        Each is for the delegate as the one before it left it, so that a request that is late, of a
        former leader for example, undoes nothing.
        """
        refusals: list[str] = []
        done, before = changes.record(chaperon), changes.record(pod)
        now = pod
        if body := changes.resize_patch(delta, pod):
            request = self._patch(now, body, "resize")
            now = await _attempt(request, "resources", done, before, refusals) or now

        if delta.get(changeable.EPHEMERAL):
            full = await self._client.get(
                kinds.POD_CHAPERONS, objects.name(chaperon), objects.namespace(chaperon)
            )
            request = self._add_ephemeral(delta, full, now)
            now = await _attempt(request, changeable.EPHEMERAL, done, before, refusals) or now

        if delta.get(changes.CONDITIONS):
            live = await self._client.get(kinds.PODS, objects.name(pod), objects.namespace(pod))
            if body := changes.conditions_patch(delta, chaperon, live):
                request = self._patch(live, body, "status")
                now = await _attempt(request, changes.CONDITIONS, done, before, refusals) or now

        if done != before:
            body = changes.pod_patch(delta, pod, done)
            after = await _attempt(self._patch(now, body, None), "", done, before, refusals)
            if after is not None:
                self._expectations.expect(objects.key(pod), pod, after)

        return refusals

    async def _add_ephemeral(self, delta: Object, full: Object, pod: Object) -> Object:
        if problem := pod_shape.problem(full):
            raise Invalid(422, "Invalid", f"the PodChaperon is not of a pod: {problem}")

        body = changes.ephemeral_patch(delta, full, pod)
        return await self._patch(pod, body, "ephemeralcontainers")

    async def _patch(self, pod: Object, body: Object, subresource: str | None) -> Object:
        return await self._client.patch(
            kinds.PODS,
            objects.name(pod),
            objects.if_unchanged(body, pod),
            objects.namespace(pod),
            subresource=subresource,
            strategic=True,
        )


async def _attempt(
    request: Awaitable[Object], part: str, done: Object, before: Object, refusals: list[str]
) -> Object | None:
    """Await a request, and return the pod as it is then.

    If it is refused, put back into `done` what `before` has of that part; return None.
    """
    try:
        return await request
    except (Conflict, ServerError, TooManyRequests):
        raise
    except ApiError as error:
        refusals.append(error.message)
        done.pop(part, None)
        if part in before:
            done[part] = before[part]

        return None
