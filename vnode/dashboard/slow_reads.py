"""Reads what a page shows and no informer watches: usage, the agent's Lease, and Events.

It is read while somebody looks, once in `measuring.RESOLUTION` seconds, and no page waits for it
for long. What may not be read, or cannot be now, is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Unreachable
from vnode.api.objects import Object, Objects
from vnode.api.resources import Resources
from vnode.insight import measuring
from vnode.kube.client import Client
from vnode.runtime.leader import AGENT_LEASE

_TIMEOUT: Final = 2.0  # seconds that a page waits
_OURS: Final = "reportingComponent=vnode,reason!=FailedScheduling"
"""Events of agents; those of pods that wait would be most of them, and pods say it themselves."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Readings:
    """What was read last; `used` is by virtual node."""

    used: dict[str, Resources] = field(default_factory=dict)
    lease: Object | None = None
    events: Objects = field(default_factory=list)


class SlowReads:
    """Keeps the last readings. Events are read only if it is said, of `namespace` (None: all)."""

    def __init__(
        self,
        client: Client,
        agent_namespace: str,
        *,
        clock: Clock,
        reads_events: bool,
        namespace: str | None,
    ) -> None:
        self.readings = Readings()
        self._client = client
        self._agent_namespace = agent_namespace
        self._clock = clock
        self._reads_events = reads_events
        self._namespace = namespace
        self._read_at: float | None = None  # monotonic

    async def read(self) -> bool:
        """Read if it is time; tell whether something is different."""
        now = self._clock.monotonic()
        if self._read_at is not None and now - self._read_at < measuring.RESOLUTION:
            return False

        self._read_at, before = now, self.readings
        client = self._client
        lease = client.get(kinds.LEASES, AGENT_LEASE, self._agent_namespace)
        async with asyncio.TaskGroup() as group:
            used = group.create_task(_in_time(measuring.of_nodes(client), {}), name="usage")
            found = group.create_task(_in_time(lease, None), name="lease")
            events = group.create_task(_in_time(self._events(), []), name="events")

        self.readings = Readings(used.result(), found.result(), events.result())
        return self.readings != before

    async def _events(self) -> Objects:
        if not self._reads_events:
            return []

        return await self._client.list(kinds.EVENTS, self._namespace, field_selector=_OURS)


async def _in_time(reading: Coroutine[Any, Any, T], otherwise: T) -> T:
    """Return what is read, or `otherwise`: a page is of use without it."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            return await reading
    except (ApiError, Unreachable, TimeoutError):
        return otherwise
