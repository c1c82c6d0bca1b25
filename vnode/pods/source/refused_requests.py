"""Tells on a proxy pod which request of ours for it an API server refuses, again and again.

What a pod needs is asked of two API servers, and on the way there are webhooks, policies and
proxies of all kinds. Where a refusal has a consequence of its own, the module that asks tells it in
its own words; all others end up here, so that none is in the agent's log only.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, objects
from vnode.api.errors import ApiError, Conflict
from vnode.api.objects import Object
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.runtime.link import Link

REASON: Final = "RequestRefused"


class RefusedRequests:
    """Remembers whose last requests were refused; once is no news, for it may pass."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._refused: set[str] = set()  # keys of pods; go with success

    def tell(self, key: str, pod: Object | None, error: ApiError) -> None:
        """Record an Event on a pod whose requests were refused before.

        A Conflict is no refusal: something has changed since it was decided what to ask for.
        """
        if pod is None or isinstance(error, Conflict):
            return

        if key in self._refused:
            text = f"a request for this pod is refused, and tried again: {error.message}"
            self._events.event(about(pod), WARNING, REASON, text)

        self._refused.add(key)

    def tell_of_end(self, pod: Object, link: Link | None) -> None:
        """Record an Event on a terminating pod if its target refuses to delete the delegate."""
        candidate = link.candidate(objects.key(pod), objects.uid(pod)) if link else None
        if candidate is None or not objects.is_terminating(candidate):
            return

        if refused := objects.annotations(candidate).get(keys.REFUSED):
            text = f"the delegate pod is not deleted, which is tried again: {refused}"
            self._events.event(about(pod), WARNING, REASON, text)

    def settle(self, key: str) -> None:
        """Forget a pod whose requests were taken, or that is gone."""
        self._refused.discard(key)
