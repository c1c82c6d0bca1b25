"""Writing to a proxy pod what its delegate tells, and remembering what was written.

A status that a target reports goes through here to the source's API server: built by `feedback`,
bounded in size, since the other cluster may be hostile, and timed from the moment at which the
chaperon's change was seen. Until the informer has shown the result of a write, decisions about that
pod rest: they would be made on what was before.
"""

from __future__ import annotations

from vnode.api import kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.pods import feedback
from vnode.runtime.echoes import Echoes
from vnode.runtime.links import Link
from vnode.telemetry import metrics


class Mirror:
    """The source's writes to proxy pods, by the pod's key."""

    def __init__(self, client: Client, events: EventRecorder) -> None:
        self._client = client
        self._events = events
        self._echoes = Echoes()
        self._lags = metrics.Lags(metrics.FEEDBACK_SECONDS)

    def pending(self, key: str, proxy: Object) -> bool:
        """Whether a write to this pod is still to be seen by its informer."""
        return self._echoes.pending(key, proxy)

    def expect(self, key: str) -> None:
        """A chaperon of this pod has changed: the time to the pod's own change begins."""
        self._lags.start(key)

    def nothing_to_feed(self, key: str) -> None:
        """The change that was expected needs no write."""
        self._lags.forget(key)

    def forget(self, key: str) -> None:
        """The pod is gone."""
        self._echoes.forget(key)
        self._lags.forget(key)

    async def feed_back(self, proxy: Object, candidate: Object, link: Link) -> None:
        """Take over annotations and status of the delegate, as far as they have changed."""
        notes = feedback.annotations_patch(proxy, candidate, two_way=link.runs_vnode)
        if notes and not self._refuses(proxy, notes):
            proxy = await self.patch(proxy, notes)

        status = feedback.status_patch(proxy, candidate)
        if status and not self._refuses(proxy, status):
            await self.patch(proxy, status, subresource="status")
            self._lags.stop(objects.key(proxy))
        else:
            self._lags.forget(objects.key(proxy))

    def _refuses(self, proxy: Object, patch: Object) -> bool:
        if not (what := feedback.exceeds(proxy, patch)):
            return False

        text = f"the delegate pod would give this pod {what}: not taken over"
        self._events.event(
            objects.reference(proxy, "Pod", "v1"), "Warning", "FeedbackRefused", text
        )
        return True

    async def patch(
        self,
        proxy: Object,
        body: Object,
        *,
        subresource: str | None = None,
        strategic: bool = False,
    ) -> Object:
        """Patch a proxy pod; it comes back as it is now, or as it was if it is gone."""
        try:
            after = await self._client.patch(
                kinds.PODS,
                objects.name(proxy),
                body,
                objects.namespace(proxy),
                subresource=subresource,
                strategic=strategic,
            )
        except NotFound:
            return proxy

        self._echoes.expect(objects.key(proxy), proxy, after)
        return after
