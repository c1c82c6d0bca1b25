"""Knows which targets are lost, and for how long, by what this leader itself finds.

Neither the conditions nor the taints of a virtual node count: Kubernetes sets them late or not at
all where many nodes fail at once, leaves them on a node while no agent runs, and they go with a
Node that somebody deletes. A target is lost while its link is not healthy, and has been asked a
moment ago, or while no connection to it can be made. While a connection is being made, and after
the process has stood still, nobody knows.

The time is that of our own monotonic clock. What earlier leaders saw is the condition Ready of the
Target, which outlives Node and agent: it counts if it says that the target was lost before, and
this leader has not found it there since (docs/decisions/0065).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.runtime.link import Link
from vnode.runtime.link_health import CONNECTING, LEAVING
from vnode.runtime.links import Links

RECENT: Final = 30.0
"""Seconds for which the answer of a probe counts; a target is probed more often."""
LOOK_AGAIN: Final = 2.0
"""Seconds after which to ask again about a target of which nothing is known."""


class TargetConditions(Protocol):
    """What the condition Connected of each Target says."""

    def of_node(self, node: str) -> TargetKey | None:
        """Return which Target a virtual node stands for; None if there is no such Target."""

    def found(self, key: TargetKey) -> Object | None:
        """Return the condition that this process has found, None if it has found nothing yet."""

    def recorded(self, key: TargetKey) -> Object | None:
        """Return the condition that the Target has."""

    def subscribe(self, changed: Callable[[TargetKey], None]) -> None:
        """Call `changed` with the key of each Target whose conditions may be others now."""


class TargetLoss(NamedTuple):
    """A target that was lost when it was last looked at."""

    seconds: float
    is_known: bool
    """Whether it is so now; otherwise wait."""


class LostTargets:
    """Follows the targets of all links, by virtual node, from `watch` on."""

    def __init__(self, links: Links, targets: TargetConditions, clock: Clock) -> None:
        self._links = links
        self._targets = targets
        self._clock = clock
        self._since: dict[str, float] = {}  # monotonic; of those that are lost
        self._moments: dict[str, datetime] = {}  # the same, by the wall clock
        self._answered: set[str] = set()  # targets that this leader has found there
        self._changed: Listeners[str] = Listeners()

    def watch(self) -> None:
        """Follow them from now on."""
        self._targets.subscribe(lambda key: self._look_at(key.node_name))
        self._links.subscribe(self._on_link, lambda link: self._look_at(link.node_name))

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the node of each that is lost or back, and now of those lost."""
        self._changed.add(changed)
        for node in list(self._since):
            changed(node)

    def moments(self) -> dict[str, datetime]:
        """Return since when targets have been lost, for people, by node."""
        return dict(self._moments)

    def loss(self, node: str) -> TargetLoss | None:
        """Return for how long the target of a node has been lost; None if it has not."""
        since = self._since.get(node)
        if since is None:
            return None

        now, link = self._clock.monotonic(), self._links.get(node)
        is_recent = link is None or (link.probed_at is not None and now - link.probed_at <= RECENT)
        return TargetLoss(now - since, self._is_lost(node) is True and is_recent)

    def _on_link(self, link: Link) -> None:
        link.on_health(lambda: self._look_at(link.node_name))
        self._look_at(link.node_name)

    def _look_at(self, node: str) -> None:
        is_lost = self._is_lost(node)
        if is_lost:
            if node not in self._since:
                earlier = self._earlier(node)
                self._since[node] = self._clock.monotonic() - earlier
                self._moments[node] = self._clock.now() - timedelta(seconds=earlier)

        elif is_lost is False or self._targets.of_node(node) is None:
            self._since.pop(node, None)
            self._moments.pop(node, None)

        if is_lost is False:
            self._answered.add(node)
        elif self._targets.of_node(node) is None:
            self._answered.discard(node)

        self._changed.call(node)

    def _is_lost(self, node: str) -> bool | None:
        """Tell whether a target is lost as far as this leader has found; None if it has not yet."""
        if (link := self._links.get(node)) is not None:
            if link.health.healthy:
                return False

            return None if link.health.reason in (CONNECTING, LEAVING) else True

        key = self._targets.of_node(node)
        found = self._targets.found(key) if key is not None else None
        return True if found is not None and found.get("status") == "False" else None

    def _earlier(self, node: str) -> float:
        """Return for how many seconds earlier leaders have found a target lost, without a break."""
        key = self._targets.of_node(node)
        if key is None or node in self._answered:
            return 0.0

        recorded = self._targets.recorded(key) or {}
        since = objects.parse_timestamp(str(recorded.get("lastTransitionTime") or ""))
        if recorded.get("status") != "False" or since is None or since.tzinfo is None:
            return 0.0

        return max(0.0, (self._clock.now() - since).total_seconds())
