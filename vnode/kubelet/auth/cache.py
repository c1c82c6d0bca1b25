"""Caches what the API server said about tokens and permissions.

The number of entries is bounded, because callers choose the keys.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from vnode.api.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Keeps at most `limit` values, each until its own time; drops the least recently used."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value, or None if there is none or it has expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None

        until, value = entry
        if self._clock.monotonic() >= until:
            del self._entries[key]
            return None

        self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V, seconds: float) -> None:
        """Keep a value for that many seconds."""
        self._entries[key] = (self._clock.monotonic() + seconds, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self._limit:
            self._entries.popitem(last=False)
