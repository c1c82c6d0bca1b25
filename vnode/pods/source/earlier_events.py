"""Remembers which Events of delegates an earlier leader has told, until each is looked for.

They are read once, when a term begins. Whoever may write Events can make some that seem to be
vnode's, as large and as many as they like: so each is read as it comes, and only what is needed of
it is kept, if it could be vnode's at all.
"""

from __future__ import annotations

from typing import Any, Final

from vnode.api import kinds, objects, shapes
from vnode.api.objects import Object
from vnode.kube import events
from vnode.kube.client import Client
from vnode.pods.source import proxy_events

MOST: Final = 10_000
"""Events of a namespace that are remembered: 500 pods that start in the hour for which API servers
keep them. Those beyond are told once more."""

EventState = tuple[str, int]
"""The words and the count of an Event."""


class EarlierEvents:
    """Knows the state of Events that were there when it read them."""

    def __init__(self) -> None:
        # By namespace, then by name; MOST of each. None is empty. An entry goes when it is taken.
        self._states: dict[str, dict[str, EventState]] = {}

    async def read(self, client: Client) -> None:
        """Read the Events of vnode that are there. May raise VnodeError."""
        self._states.clear()
        selector = f"reportingComponent={proxy_events.REPORTER}"
        await client.list(kinds.EVENTS, field_selector=selector, kept=self._note)

    def take(self, event: Object) -> EventState | None:
        """Return the state in which an Event was, once; None if it was not there."""
        namespace = objects.namespace(event)
        of_namespace = self._states.get(namespace, {})
        state = of_namespace.pop(objects.name(event), None)
        if not of_namespace:
            self._states.pop(namespace, None)

        return state

    def _note(self, event: Any) -> None:
        """Note an Event of the list, of which nothing else is kept."""
        if not shapes.is_object(event):
            return

        message = event.get("message")
        if not isinstance(message, str) or len(message) > events.MESSAGE_LIMIT:
            return

        of_namespace = self._states.setdefault(objects.namespace(event), {})
        if len(of_namespace) < MOST:
            of_namespace[objects.name(event)] = proxy_events.state_of(event)
