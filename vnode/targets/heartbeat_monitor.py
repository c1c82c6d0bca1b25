"""Tells a link whether the target still runs vnode, by heartbeats (`heartbeats`) that end.

What counts is that the heartbeat changes, by our own monotonic clock, since clocks of clusters
differ: as with Leases in client-go. Only time in which the target answers counts, and a heartbeat
that was there before is believed for one period: neither an outage of the network nor a restart of
ours makes a target that runs vnode look like one that does not.
"""

from __future__ import annotations

import asyncio

from vnode.api import keys, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.runtime.link import Link
from vnode.targets.heartbeats import TIMEOUT


class HeartbeatMonitor:
    """Keeps `link.runs_vnode` true, while `run` runs."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self._link = link
        self._clock = clock
        self._heartbeat = ""  # the last one
        self._heard_at = clock.monotonic()
        self._silent = False
        self._healthy = link.health.healthy
        self._wake = asyncio.Event()  # set when the deadline may have moved
        link.summaries.subscribe(self._on_summary)
        link.on_health(self._on_health)

    async def run(self) -> None:
        """Watch for the end of the heartbeat until cancelled."""
        while True:
            self._wake.clear()
            left = self._seconds_left()
            if left is not None and left <= TICK:
                self._silent = True
                self._link.set_agent_silent(True)
            else:
                await happens_within(self._wake, left)

    def _seconds_left(self) -> float | None:
        """Return the seconds to the end of our patience; None while it is not tried."""
        if self._silent or not self._healthy:
            return None

        return self._heard_at + TIMEOUT - self._clock.monotonic()

    def _on_summary(self, _old: Object | None, new: Object | None) -> None:
        heartbeat = objects.annotations(new or {}).get(keys.HEARTBEAT, "")
        if heartbeat and heartbeat != self._heartbeat:
            self._heartbeat = heartbeat
            self._silent = False
            self._restart()

        self._link.set_agent_silent(self._silent)

    def _on_health(self) -> None:
        healthy = self._link.health.healthy
        if healthy != self._healthy:
            self._healthy = healthy
            self._restart()

    def _restart(self) -> None:
        self._heard_at = self._clock.monotonic()
        self._wake.set()
