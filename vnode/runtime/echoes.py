"""Writes whose echo has not come back through the informer yet.

An informer is a moment behind. Whoever decides from its store right after a write would decide the
same again, and write it again. So a writer notes which version it wrote upon; until the store shows
another one, there is nothing to decide, and the event that brings it wakes the reconciler anyway.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object


class Echoes:
    """For each key, the version that our last write was based on, until a newer one is seen."""

    def __init__(self) -> None:
        self._based_on: dict[str, str] = {}  # no entry: no write of ours is under way

    def expect(self, key: str, before: Object, after: Object) -> None:
        """A write turned the version `before` into `after`; the same version means no event."""
        if objects.resource_version(before) != objects.resource_version(after):
            self._based_on[key] = objects.resource_version(before)

    def pending(self, key: str, current: Object) -> bool:
        """The store still shows what our last write was based on."""
        if self._based_on.get(key) == objects.resource_version(current):
            return True

        self._based_on.pop(key, None)
        return False

    def forget(self, key: str) -> None:
        """The object is gone."""
        self._based_on.pop(key, None)
