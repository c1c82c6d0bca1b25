"""Says which Rebalances of a namespace are carried out, and which wait for others to end. Pure.

One that runs keeps something of each workload that it is for, for ten minutes if nothing moves. So
a few of a namespace run at once. The others begin in the order in which they came.
"""

from __future__ import annotations

from typing import Final

from vnode.api import objects

AT_ONCE: Final = 4  # Rebalances of a namespace


class RebalanceTurns:
    """The Rebalances that run, and those that wait, by namespace."""

    def __init__(self) -> None:
        # By namespace: keys, and UIDs by key, the first first. No empty ones.
        self._running: dict[str, set[str]] = {}
        self._waiting: dict[str, dict[str, str]] = {}

    def waits(self, key: str, uid: str) -> bool:
        """Tell whether the object of that key and UID waits."""
        return self._waiting.get(objects.key_namespace(key), {}).get(key) == uid

    def begin(self, key: str, uid: str) -> bool:
        """Have one run if it may; else it waits."""
        namespace = objects.key_namespace(key)
        if key in self._running.get(namespace, ()):
            return True

        if (self.next(namespace) or key) == key and self._has_room(namespace):
            self.leave(key)
            self._running.setdefault(namespace, set()).add(key)
            return True

        self._waiting.setdefault(namespace, {})[key] = uid
        return False

    def next(self, namespace: str) -> str | None:
        """Return the key of the one that may begin now; None if there is none."""
        waiting = self._waiting.get(namespace, ())
        return next(iter(waiting), None) if self._has_room(namespace) else None

    def leave(self, key: str) -> None:
        """Take note that one neither runs nor waits."""
        namespace = objects.key_namespace(key)
        if (running := self._running.get(namespace)) is not None:
            running.discard(key)
            if not running:
                del self._running[namespace]

        if (waiting := self._waiting.get(namespace)) is not None:
            waiting.pop(key, None)
            if not waiting:
                del self._waiting[namespace]

    def _has_room(self, namespace: str) -> bool:
        return len(self._running.get(namespace, ())) < AT_ONCE
