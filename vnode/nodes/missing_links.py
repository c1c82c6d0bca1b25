"""Decides how long a Node is left unchanged while there is no link to its target, and what it says
then."""

from __future__ import annotations

from typing import Final

from vnode.api.clock import Clock
from vnode.api.target_key import TargetKey
from vnode.runtime.link import Link
from vnode.runtime.link_health import CONNECTING, OTHER_CLUSTER, LinkHealth

CONNECT_TIMEOUT: Final = 10.0
"""Seconds without a connection until a Node says so that was not ready before."""
RECONNECT_TIMEOUT: Final = 30.0
"""Seconds until one is not ready that was: an agent that began with 100 targets on a busy machine
had connected to the last of them after 20 s, and Kubernetes writes an Event for each pod of a Node
that is not ready for a moment."""


class MissingLinks:
    """Remembers since when each Node, by name, has no connection."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}  # monotonic

    def wait(self, name: str, link: Link | None, *, was_ready: bool) -> float:
        """Return the seconds for which a Node is left unchanged because its link is being made.

        Otherwise each restart of the agent, and each new token, would turn Nodes not ready.
        """
        if link is not None and (
            link.health.healthy
            or (link.synced and link.health.reason != CONNECTING)
            or link.health.reason == OTHER_CLUSTER
        ):
            self.forget(name)
            return 0.0

        now = self._clock.monotonic()
        timeout = RECONNECT_TIMEOUT if was_ready else CONNECT_TIMEOUT
        return self._since.setdefault(name, now) + timeout - now

    def forget(self, name: str) -> None:
        """Drop what is known of a Node that is gone, or connected."""
        self._since.pop(name, None)

    def health(self, target: TargetKey) -> LinkHealth:
        """Return the health of a target without a link."""
        kind = "target" if target.namespace else "clustertarget"
        scope = f" -n {target.namespace}" if target.namespace else ""
        message = f"no connection can be made: see kubectl describe {kind} {target.name}{scope}"
        return LinkHealth(False, "TargetNotConnected", message, self._clock.now())
