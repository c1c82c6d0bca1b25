"""Deletes bound proxy pods that have no delegate any more, for their owners to replace them.

That is what Kubernetes does with the pods of a node that is gone. A target that loses thousands at
once, or says so, has them deleted in turns.
"""

from __future__ import annotations

import logging

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.pods.source import feedback
from vnode.pods.source.status_writer import StatusWriter
from vnode.runtime import write_limits
from vnode.runtime.link import Link
from vnode.runtime.write_limits import TurnLimiter

log = logging.getLogger(__name__)


class LostPods:
    """Deletes them, with a status and an Event that say why."""

    def __init__(
        self, client: Client, status_writer: StatusWriter, events: EventRecorder, clock: Clock
    ) -> None:
        self._client = client
        self._status_writer = status_writer
        self._events = events
        self._clock = clock
        self._turns: TurnLimiter[str] = TurnLimiter("lost pods", write_limits.LOST_PODS, clock)

    def forget(self, key: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._turns.forget(key)

    async def delete_of(self, link: Link, proxy: Object, *, disrupted: bool = True) -> float | None:
        """Delete a pod whose target has lost its delegate; return when it is its turn, if not now.

        `disrupted` is as in `delete`.
        """
        key, target = objects.key(proxy), str(link.target)
        if wait := self._turns.wait(key, target, lambda: 1):
            return wait

        self._turns.done(key, target, 1)
        why = f"the delegate pod in target {target} was deleted there"
        await self.delete(proxy, why, disrupted=disrupted)
        return None

    async def delete(self, proxy: Object, why: str, *, disrupted: bool = True) -> None:
        """Delete a pod.

        It was disrupted, unless its target has reported the deletion of the delegate: then the
        delegate's conditions say why.
        """
        log.info("deleting pod %s: %s", objects.key(proxy), why)
        body = feedback.disrupted(proxy, why, self._clock.now())
        if disrupted and body:
            await self._status_writer.patch(proxy, body, subresource="status")

        text = f"{why}; deleting this pod, for its owner to replace it"
        self._events.event(about(proxy), WARNING, "DelegateLost", text)
        await self._client.discard(kinds.PODS, proxy)
