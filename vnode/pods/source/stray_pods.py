"""Sends pods away from virtual nodes that came there only because they tolerate every taint.

The webhook keeps such pods on machines, but not while no agent runs: then kube-scheduler takes
virtual nodes for its best ones. Nothing can unbind a pod. So it is deleted, for its controller to
make another, which the webhook sees.

Each controller's pods are sent away for a minute at most: where others come all the same, the
webhook does not see them, and they would be made and deleted for ever.
"""

from __future__ import annotations

import logging
from typing import Final

from vnode.api import kinds, objects, real_nodes
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey, owner_key
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about

_LONGEST: Final = 60.0  # seconds
MOST: Final = 1_000
"""Controllers that are remembered: whoever makes pods by hand gives them any owner there is."""
_WHY: Final = (
    "the pod tolerates every taint, and was bound to a virtual node, which runs no pods of its "
    "namespace; deleting it, for its owner to make another, which the webhook keeps on machines"
)

log = logging.getLogger(__name__)


class StrayPods:
    """Deletes them; remembers since when, by their controller."""

    def __init__(self, client: Client, events: EventRecorder, clock: Clock) -> None:
        self._client = client
        self._events = events
        self._clock = clock
        # Monotonic, the oldest first; `MOST` for as long as a term, of which a handful are honest.
        self.since: dict[OwnerKey, float] = {}

    async def send_away(self, pod: Object) -> bool:
        """Delete a pod that nobody meant for its virtual node; tell whether it was deleted.

        A pod without a controller stays: nobody would make another.
        """
        owner = owner_key(pod)
        now = self._clock.monotonic()
        if not owner or now - self.since.get(owner, now) > _LONGEST:
            return False

        try:
            live = await self._client.get(kinds.PODS, objects.name(pod), objects.namespace(pod))
        except NotFound:
            return False

        if objects.uid(live) != objects.uid(pod) or not real_nodes.is_lured(objects.spec(live)):
            return False

        self.since.setdefault(owner, now)
        if len(self.since) > MOST:  # its pods may be sent away for a minute more
            del self.since[next(iter(self.since))]

        log.info("deleting pod %s: it tolerates every taint", objects.key(pod))
        self._events.event(about(pod), WARNING, "StrayPod", _WHY)
        await self._client.discard(kinds.PODS, live)
        return True
