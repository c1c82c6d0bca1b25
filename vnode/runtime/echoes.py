"""Writes whose echo has not come back through the informer yet.

An informer is a moment behind. Whoever decides from its store right after a write would decide the
same again, and write it again. So a writer notes which version it wrote upon; until the store shows
another one, there is nothing to decide, and the event that brings it wakes the reconciler anyway.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object


class Echoes:
    """For each key, our last write, until its version or a newer one is seen."""

    def __init__(self) -> None:
        # Versions before and after; no entry: no write of ours is under way.
        self._writes: dict[str, tuple[str, str]] = {}

    def expect(self, key: str, before: Object, after: Object) -> None:
        """A write turned the version `before` into `after`; the same version means no event."""
        old, new = objects.resource_version(before), objects.resource_version(after)
        if old != new:
            self._writes[key] = old, new

    def pending(self, key: str, current: Object) -> bool:
        """The store shows a version from before our last write."""
        write = self._writes.get(key)
        if write is None:
            return False

        if _is_before(objects.resource_version(current), *write):
            return True

        del self._writes[key]
        return False

    def forget(self, key: str) -> None:
        """The object is gone."""
        self._writes.pop(key, None)


def _is_before(current: str, old: str, new: str) -> bool:
    """Versions of one kind compare as numbers (Kubernetes 1.35); any others for equality only."""
    if current.isdecimal() and new.isdecimal():
        return int(current) < int(new)

    return current == old
