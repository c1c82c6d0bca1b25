"""Limits the feedback of targets: writes of each pod, and bytes of all pods of a target."""

from __future__ import annotations

from collections.abc import Callable

from vnode.api.clock import Clock
from vnode.runtime import write_limits
from vnode.runtime.write_limits import TurnLimiter, WriteLimiter


class FeedbackLimiter:
    """Says when a pod may be written. Pods are identified by their keys."""

    def __init__(self, clock: Clock) -> None:
        self._writes: WriteLimiter[str] = WriteLimiter("pods", write_limits.PODS, clock)
        self._bytes: TurnLimiter[str] = TurnLimiter("pods", write_limits.BYTES, clock)
        self._held: set[str] = set()  # pods that were told to wait, and have not come back since

    def wait(self, key: str, target: str, size: Callable[[], int]) -> float:
        """Return the seconds until the pod may be written, with `size()` bytes: 0 for now."""
        wait = self._writes.wait(key) or self._bytes.wait(key, target, size)
        if wait:
            self._held.add(key)
        else:
            self._held.discard(key)

        return wait

    def left(self, key: str) -> float:
        """Return the seconds that a pod still has to wait that was told to; else 0."""
        return max(self._writes.wait(key), self._bytes.left(key)) if key in self._held else 0.0

    def is_held(self, key: str) -> bool:
        """Tell whether a pod was told to wait, and has not come back since."""
        return key in self._held

    def written(self, key: str, target: str, size: int) -> None:
        """Count a write that made the pod `size` bytes large, 0 if the API server refused it."""
        self._writes.written(key)
        self._bytes.done(key, target, size)

    def release(self, key: str) -> None:
        """Let a pod wait no longer, which has nothing to write any more."""
        self._held.discard(key)

    def forget(self, key: str) -> None:
        """Drop what is known of a pod that is gone."""
        self._writes.forget(key)
        self._bytes.forget(key)
        self._held.discard(key)
