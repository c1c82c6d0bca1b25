"""Writes to a proxy pod what its delegate reports, and remembers what was written.

A status that a target reports goes through here to the source's API server: built by `feedback`,
bounded in size, since the other cluster may be hostile, and timed from the moment at which the
chaperon's change was seen. Until the informer has shown the result of a write, decisions about that
pod rest: they would rely on the state before. Annotations and status are separate requests, so that
a refusal of one does not block the other.

A target that reports too many changes, or too large ones, has to wait (`feedback_limiter`): then
nothing is written now, and the caller reconciles the pod again when it may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import ApiError, Denied, Invalid, ServerError, TooManyRequests
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder, about
from vnode.pods import chaperons, status_size
from vnode.pods.source import after_feedback, feedback, shared_parts
from vnode.pods.source.feedback_limiter import FeedbackLimiter
from vnode.runtime.expectations import Expectations
from vnode.runtime.link import Link
from vnode.telemetry import metrics

RETRY_DELAY: Final = 30.0  # seconds until feedback that was refused is tried again
_LAST_WRITE: Final = 30.0  # seconds that the end of a pod waits for its last status to be written
_PARTS: Final = (None, "status")  # subresources that are written


@dataclass(frozen=True, slots=True)
class _FailedWrite:
    """A patch that the API server did not take, and when it may be asked again."""

    body: Object
    until: float  # monotonic


class StatusWriter:
    """Writes to proxy pods; `wake` is called with the key of one whose write was never seen."""

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        clock: Clock,
        wake: Callable[[str], None] = lambda _key: None,
    ) -> None:
        self._client = client
        self._events = events
        self._clock = clock
        self._expectations = Expectations(wake)
        self._limiter = FeedbackLimiter(clock)
        self._lags = metrics.Lags(metrics.FEEDBACK_SECONDS)
        self._tight: set[str] = set()  # keys of pods that an API server found too large
        # By key and subresource; an entry goes when that part was taken, or has nothing to write.
        self._refusals: dict[tuple[str, str | None], _FailedWrite] = {}
        # What the API server left out of the last write of a part without a word: fields that it
        # does not know, or that its admission takes off. Sent again with the next change only.
        self._ignored: dict[tuple[str, str | None], Object] = {}

    def pending(self, key: str, proxy: Object) -> bool:
        """Return whether the informer has yet to show a write to this pod."""
        return self._expectations.pending(key, proxy)

    def expect(self, key: str) -> None:
        """Start to measure the time from a change of this pod's chaperon to its own."""
        self._lags.start(key)

    def nothing_to_feed(self, key: str) -> None:
        """Stop the measurement: the change needs no write."""
        self._lags.forget(key)

    def forget(self, key: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._expectations.forget(key)
        self._limiter.forget(key)
        self._lags.forget(key)
        self._tight.discard(key)
        self.retry_now(key)

    def held(self, key: str) -> float | None:
        """Return the seconds for which the feedback just offered has to wait; None if it has not.

        Ask before a pod is released or deleted, or it would lack its last status. None also after
        so much from its target that the pod would wait for long: ending a pod must stay possible.
        """
        left = self._limiter.left(key)
        return max(left, TICK) if self._limiter.is_held(key) and left <= _LAST_WRITE else None

    def retry_now(self, key: str) -> None:
        """Have the next feedback offer what was refused before, however short a while ago."""
        for part in _PARTS:
            self._refusals.pop((key, part), None)
            self._ignored.pop((key, part), None)

    async def feed_back(self, proxy: Object, candidate: Object, link: Link) -> float | None:
        """Take over annotations and status of the delegate, as far as they have changed.

        Annotations go first: a client that learns that a pod is ready may look for them. Returns
        the seconds to a retry if the API server refused a part, for its reasons may change unseen,
        or if the target has to wait.
        """
        key = objects.key(proxy)
        if wait := self._limiter.left(key):  # before anything is compared: that takes time, too
            self._lags.forget(key)
            return wait

        two_way = link.runs_vnode or chaperons.is_held(candidate)  # its agent may just be down
        build = partial(feedback.annotations_patch, chaperon=candidate, two_way=two_way)
        annotations, status = build(proxy), self._status_patch(proxy, candidate)
        if wait := self._wait(proxy, annotations, status, link):
            self._lags.forget(key)
            return wait

        if not status:
            shared_parts.share(proxy, candidate)

        failure: ServerError | TooManyRequests | None = None
        try:
            after = await self._offer(proxy, annotations, build, None, link)
        except (ServerError, TooManyRequests) as error:  # of a webhook that need not see statuses
            after, failure = None, error

        if after is not None:
            proxy, status = after, self._status_patch(after, candidate)

        if (written := await self._offer_status(proxy, status, candidate, link)) is not None:
            self._lags.stop(key)
            if (words := feedback.preempted(written)) and not feedback.preempted(proxy):
                message = f"in target {link.target}: {words}"
                self._events.event(about(proxy), NORMAL, "Preempted", message)
        else:
            self._lags.forget(key)

        if failure is not None:
            raise failure

        return self._again_in(key)

    async def _offer_status(
        self, proxy: Object, body: Object, candidate: Object, link: Link
    ) -> Object | None:
        """Patch the status of a proxy as `_offer` does, shortened if the API server wants that."""
        key, build = objects.key(proxy), partial(self._status_patch, candidate=candidate)
        try:
            written = await self._offer(proxy, body, build, "status", link)
        except ApiError as error:
            if not status_size.is_too_large(error) or key in self._tight:
                raise

            self._tight.add(key)
            written = await self._offer(proxy, build(proxy), build, "status", link)

        if written is not None:
            self._tell_shortened(proxy, candidate)

        return written

    def _tell_shortened(self, proxy: Object, candidate: Object) -> None:
        """Record an Event if the pod does not show all of its delegate's status."""
        tight = objects.key(proxy) in self._tight
        if size := feedback.excess(proxy, candidate, tight=tight):
            text = (
                f"the delegate pod's status has {size} bytes, which is too much for this pod: it "
                "lacks volume mounts and resources of containers, and messages may be cut"
            )
            self.warn(proxy, "FeedbackShortened", text)

    def _status_patch(self, proxy: Object, candidate: Object) -> Object:
        """Build the patch of status, without its record if there is no room for one."""
        tight = objects.key(proxy) in self._tight
        patch = feedback.status_patch(proxy, candidate, tight=tight)
        if objects.annotations(patch) and after_feedback.exceeds(proxy, {**patch, "status": {}}):
            return feedback.without_record(patch)

        return patch

    def _wait(self, proxy: Object, annotations: Object, status: Object, link: Link) -> float:
        """Return the seconds until these patches may be sent; 0 if they may, or need not be."""
        key = objects.key(proxy)
        if not (self._is_due((key, None), annotations) or self._is_due((key, "status"), status)):
            self._limiter.release(key)
            return 0.0

        return self._limiter.wait(
            key,
            str(link.target),
            lambda: sum(len(msgspec.json.encode(part)) for part in (proxy, annotations, status)),
        )

    def _again_in(self, key: str) -> float | None:
        refusals = (self._refusals.get((key, part)) for part in _PARTS)
        times = [refusal.until for refusal in refusals if refusal is not None]
        return max(0.0, min(times) - self._clock.monotonic()) if times else None

    async def _offer(
        self,
        proxy: Object,
        body: Object,
        build: Callable[[Object], Object],
        subresource: str | None,
        link: Link,
    ) -> Object | None:
        """Patch a proxy with what its target reports; None if nothing was written.

        `build` builds the patch that is left for a proxy: `body`, before the write. The first time
        that a status is too large for the API server, that error is raised.
        """
        part = objects.key(proxy), subresource
        if not body:
            self._refusals.pop(part, None)
            self._ignored.pop(part, None)

        if not self._is_due(part, body):
            return None

        if excess := after_feedback.exceeds(proxy, body):
            text = f"the delegate pod would give this pod {excess}: not taken over"
            self.warn(proxy, "FeedbackRefused", text)
            return None

        try:
            after = await self.patch(proxy, body, subresource=subresource, if_unchanged=True)
        except (Denied, Invalid) as error:
            if subresource and status_size.is_too_large(error) and part[0] not in self._tight:
                raise

            self._limiter.written(part[0], str(link.target), 0)
            self._refusals[part] = _FailedWrite(body, self._clock.monotonic() + RETRY_DELAY)
            part_name = subresource or "annotations"
            text = f"the delegate pod's {part_name} cannot be taken over: {error.message}"
            self.warn(proxy, "FeedbackRefused", text)
            return None

        self._limiter.written(part[0], str(link.target), len(msgspec.json.encode(after)))
        self._refusals.pop(part, None)
        self._ignored.pop(part, None)
        if not after_feedback.is_taken(after, body) and (left := build(after)):
            self._ignored[part] = left

        return after

    def _is_due(self, part: tuple[str, str | None], body: Object) -> bool:
        """Tell whether there is something to write, which was not refused just now."""
        known = self._refusals.get(part)
        if known is not None and known.body == body and self._clock.monotonic() < known.until:
            return False

        return bool(body) and body != self._ignored.get(part)

    def warn(self, proxy: Object, reason: str, text: str) -> None:
        """Record an Event on a pod."""
        self._events.event(about(proxy), WARNING, reason, text)

    async def patch(
        self,
        proxy: Object,
        body: Object,
        *,
        subresource: str | None = None,
        if_unchanged: bool = False,
    ) -> Object:
        """Patch a proxy pod (its status by a strategic merge patch).

        Returns it as it is now, or as it was if it is gone.
        """
        after = await self._expectations.patch(
            self._client,
            kinds.PODS,
            proxy,
            body,
            subresource=subresource,
            strategic=subresource == "status",
            if_unchanged=if_unchanged,
        )
        return after or proxy
