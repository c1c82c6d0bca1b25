"""Asks the source's API server for the pods of chaperons that seem to be of no use.

Nothing is deleted in a target before that, and a target may have chaperons of pods that never were,
and change them all the time. So it has its turns, shared with all Targets of its namespace; and
what it says it has deleted is not looked at again for a while.
"""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.runtime import write_limits
from vnode.runtime.link import Link
from vnode.runtime.write_limits import TurnLimiter

DELETED: Final = 30.0
"""Seconds for which a chaperon is left alone that its target has taken the deletion of."""


class AskedPods:
    """Keeps the turns of targets; keys are those of pods."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._turns: TurnLimiter[tuple[str, str]] = TurnLimiter(
            "orphans", write_limits.ORPHANS, clock
        )
        # By node and UID of the chaperon, the oldest first: until when it is left alone, by the
        # monotonic clock. Those of the last `DELETED` seconds.
        self._deleted: dict[tuple[str, str], float] = {}

    def wait(self, link: Link, key: str) -> float | None:
        """Return the seconds until a pod may be asked for because of a target; None for now."""
        return self._turns.wait((link.node_name, key), _owner(link), lambda: 1) or None

    def forget(self, link: Link, key: str) -> None:
        """Note that a pod need not be asked for any more because of a target."""
        self._turns.forget((link.node_name, key))

    async def pod(self, link: Link, key: str) -> Object | None:
        """Return a pod as its API server has it; call it after `wait`."""
        self._turns.done((link.node_name, key), _owner(link), 1)
        namespace, name = objects.split_key(key)
        try:
            return await self._client.get(kinds.PODS, name, namespace)
        except NotFound:
            return None

    def deleted(self, link: Link, chaperon: Object) -> None:
        """Note that a target has taken the deletion of a chaperon."""
        now = self._clock.monotonic()
        while self._deleted and (oldest := next(iter(self._deleted.items())))[1] <= now:
            del self._deleted[oldest[0]]

        self._deleted[link.node_name, objects.uid(chaperon)] = now + DELETED

    def was_deleted(self, link: Link, chaperon: Object) -> bool:
        """Tell whether that was noted of late."""
        until = self._deleted.get((link.node_name, objects.uid(chaperon)), 0.0)
        return until > self._clock.monotonic()


def _owner(link: Link) -> str:
    """Return who has the turns of a target: its namespace, or itself, whom none is called like."""
    return link.target.namespace or f"/{link.node_name}"
