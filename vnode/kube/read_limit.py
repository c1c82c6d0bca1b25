"""Limits how much is read of one API server that need not be honest, so that it starves no other.

All connections are read by one event loop. A target that sends valid events without end would keep
it busy: between two of its chunks others get their turn, but the processor is used up. So each
client has tokens for what its informers read; without any they stop to read, and the connection
fills up until the other side has to wait.

An event costs what its kind and its subscribers make of it, and whoever may create Targets has
many servers. So the time that goes into it is counted, too: a quarter of a core over time, for
all servers together of one namespace (docs/decisions/0147).
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Final

from vnode.api.durations import TICK
from vnode.api.token_bucket import TokenBucket, TokenBuckets
from vnode.telemetry import turn_waits

RATE: Final = 2000.0  # events of up to UNIT bytes a second: some 200 pods that start
BURST: Final = 20_000
UNIT: Final = 8192  # bytes; a larger event counts for more
WATCH: Final = 20.0  # events for which the beginning of a watch counts
LIST: Final = 1000.0  # and a list

SHARE: Final = 0.25
"""Seconds of the processor for each second, over time, for what is read and what subscribers make
of it at once."""
AT_ONCE: Final = 5.0
"""Seconds that may be spent at once: some 40,000 chaperons are listed in that."""
WORK: Final = "events of targets"
"""What waits is called so in metrics."""
_PAUSE: Final = 0.02  # seconds; shorter ones would cost more than the events between them


async def unlimited(_events: float) -> None:
    """Do what `ReadLimiter.wait` does for a server that may send as much as it likes: nothing."""


class ReadTimes:
    """Keeps the time that servers may take of the event loop, by who answers for them.

    It outlives clients: whoever connects anew has not got more for that.
    """

    def __init__(self) -> None:
        self._buckets: TokenBuckets[Hashable] = TokenBuckets(AT_ONCE)

    def of(self, namespace: str, server: Hashable = None) -> ReadTime:
        """Return the time that all servers of a namespace share; without one, that of `server`."""
        return ReadTime(self, namespace, server)

    def bucket(self, owner: Hashable, now: float) -> TokenBucket:
        """Return the seconds of an owner, as tokens; to be asked for each time."""
        return self._buckets.of(owner, SHARE, now)


class ReadTime:
    """The time of one owner; who waits for it is shown (`turn_waits`)."""

    def __init__(self, times: ReadTimes, namespace: str, server: Hashable) -> None:
        self._times = times
        self._owner = namespace or (server,)  # no namespace is called like it
        self._namespace = namespace
        self._waits = turn_waits.of(WORK)

    def spend(self, seconds: float) -> None:
        """Count processor time that was spent with what was read."""
        now = asyncio.get_running_loop().time()
        self._times.bucket(self._owner, now).reserve(now, seconds)

    def left(self) -> float:
        """Return the seconds until more may be read: 0 for now."""
        now = asyncio.get_running_loop().time()
        return self._times.bucket(self._owner, now).reserve(now, 0.0)

    async def wait(self, seconds: float) -> None:
        """Wait so long for it, and say so."""
        self._waits.note(self._namespace, seconds)
        await asyncio.sleep(seconds)


class ReadLimiter:
    """Counts what is read of one API server; `time` may be shared with others."""

    def __init__(self) -> None:
        self.time = ReadTimes().of("")
        self._bucket = TokenBucket(RATE, BURST)

    def spend(self, seconds: float) -> None:
        """Count processor time that was spent with what was read."""
        self.time.spend(seconds)

    async def wait(self, events: float) -> None:
        """Count so many events, and wait if there were too many, or if they took too long."""
        wait = self._bucket.reserve(asyncio.get_running_loop().time(), events)
        if wait > TICK:
            await asyncio.sleep(wait)

        # Again and again: others of the owner may spend some meanwhile. What is waited for is time.
        while (wait := self.time.left()) > _PAUSE:
            await self.time.wait(wait)
