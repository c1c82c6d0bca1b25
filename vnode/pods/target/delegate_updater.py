"""The target's side of a change: from the record on a chaperon to its delegate.

A delegate takes a change in up to four requests, since resources, ephemeral containers and
conditions have subresources of their own; the last one, to the pod itself, also writes down what
was done. What the API server refuses is remembered with its words, and tried again after a while or
when the source says something else.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final

from vnode.api import changeable, keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, Invalid, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import changes
from vnode.runtime.expectations import Expectations

AGAIN: Final = 30.0  # seconds until a change that was refused is tried again


@dataclass(frozen=True, slots=True)
class _FailedUpdate:
    """What the API server said to a record, and when it may be asked again."""

    record: str
    pod_uid: str
    message: str
    until: float  # monotonic


class DelegateUpdater:
    """Brings delegates up to date with what their chaperons say."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._expectations = Expectations()
        self._refusals: dict[str, _FailedUpdate] = {}  # by key of the delegate

    def under_way(self, pod: Object) -> bool:
        """The store has not shown our last change of this delegate yet; its event will wake us."""
        return self._expectations.pending(objects.key(pod), pod)

    def forget(self, key: str) -> None:
        """The chaperon is gone."""
        self._expectations.forget(key)
        self._refusals.pop(key, None)

    async def bring(self, chaperon: Object, pod: Object) -> str | None:
        """Do what was not done yet; the API server's words if it refused some of it."""
        key = objects.key(pod)
        delta = changes.pending(chaperon, pod)
        if not delta:
            self._refusals.pop(key, None)
            return None

        said = objects.annotations(chaperon).get(keys.SENT, "")
        known = self._refusals.get(key)
        if (
            known is not None
            and (known.record, known.pod_uid) == (said, objects.uid(pod))
            and self._clock.monotonic() < known.until
        ):
            return known.message

        refusals = await self._carry_out(chaperon, pod, delta)
        if not refusals:
            self._refusals.pop(key, None)
            return None

        message = "; ".join(refusals)
        until = self._clock.monotonic() + AGAIN
        self._refusals[key] = _FailedUpdate(said, objects.uid(pod), message, until)
        return message

    async def _carry_out(self, chaperon: Object, pod: Object, delta: Object) -> list[str]:
        """All parts, each by itself; what was refused stays out of the delegate's record."""
        refusals: list[str] = []
        done, before = changes.record(chaperon), changes.record(pod)
        if body := changes.resize_patch(delta, pod):
            await _tried(self._patch(pod, body, "resize"), "resources", done, before, refusals)

        if delta.get(changeable.EPHEMERAL):
            full = await self._client.get(
                kinds.POD_CHAPERONS, objects.name(chaperon), objects.namespace(chaperon)
            )
            body = changes.ephemeral_patch(delta, full, pod)
            request = self._patch(pod, body, "ephemeralcontainers")
            await _tried(request, changeable.EPHEMERAL, done, before, refusals)

        if delta.get(changes.CONDITIONS):
            live = await self._client.get(kinds.PODS, objects.name(pod), objects.namespace(pod))
            if body := changes.conditions_patch(delta, chaperon, live):
                request = self._patch(pod, body, "status")
                await _tried(request, changes.CONDITIONS, done, before, refusals)

        if done != before:
            body = changes.pod_patch(delta, pod, done)
            await _tried(self._patch(pod, body, None), "", done, before, refusals)

        return refusals

    async def _patch(self, pod: Object, body: Object, subresource: str | None) -> None:
        after = await self._client.patch(
            kinds.PODS,
            objects.name(pod),
            body,
            objects.namespace(pod),
            subresource=subresource,
            strategic=True,
        )
        if subresource is None:
            self._expectations.expect(objects.key(pod), pod, after)


async def _tried(
    request: Awaitable[None], part: str, done: Object, before: Object, refusals: list[str]
) -> None:
    """Make a request; if it is refused, `done` has of that part what was there before."""
    try:
        await request
    except (Denied, Invalid, NotFound) as error:
        refusals.append(error.message)
        done.pop(part, None)
        if part in before:
            done[part] = before[part]
