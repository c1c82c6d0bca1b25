"""All objects of one API server, their versions, and what happened to them since when.

An object that is stored is never changed in place: each write stores a new one. So history, pages
of lists and watches can share them.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Final

from tests.apiserver import status
from vnode.api import objects
from vnode.api.kinds import Kind
from vnode.api.listeners import Listeners
from vnode.api.objects import Object, Objects

_FIRST: Final = 100
"""The version of an empty store: those before it are expired, as after the start of a server."""


@dataclass(frozen=True, slots=True)
class Change:
    """One write: `new` is None if the object was removed, `old` if it was created.

    The version of the removal is that of the write, and not one that the object ever had.
    """

    version: int
    old: Object | None
    new: Object | None


class ResourceStore:
    """Objects by kind and key, with one counter of versions for all of them.

    Invariants: versions in `_history` rise; what is not after `compacted` is not in it.
    """

    def __init__(self) -> None:
        self.version = _FIRST
        self.compacted = _FIRST
        self.changed: Listeners[Kind, Change] = Listeners()
        self._objects: dict[Kind, dict[str, Object]] = {}
        self._history: dict[Kind, list[Change]] = {}

    def get(self, kind: Kind, key: str) -> Object | None:
        """Return the object of that key, which must not be changed."""
        return self._objects.get(kind, {}).get(key)

    def all(self, kind: Kind) -> Objects:
        """List all objects of a kind by key; they must not be changed."""
        found = self._objects.get(kind, {})
        return [found[key] for key in sorted(found)]

    def kinds(self) -> list[Kind]:
        """List the kinds of which there has been an object."""
        return list(self._objects)

    def put(self, kind: Kind, obj: Object) -> Object:
        """Store a new state of an object under the next version; what was stored."""
        self.version += 1
        stored = at_version(obj, self.version)
        held = self._objects.setdefault(kind, {})
        key = objects.key(stored)
        change = Change(self.version, held.get(key), stored)
        held[key] = stored
        self._record(kind, change)
        return stored

    def remove(self, kind: Kind, key: str) -> Object:
        """Remove an object, which must be there; its last state, with the version of its end."""
        self.version += 1
        old = self._objects[kind].pop(key)
        change = Change(self.version, old, None)
        self._record(kind, change)
        return at_version(old, change.version)

    def since(self, kind: Kind, version: int) -> list[Change]:
        """List the changes after a version; StatusError if they are forgotten."""
        if version < self.compacted:
            raise status.expired(f"too old resource version: {version} ({self.compacted})")

        history = self._history.get(kind, [])
        return history[bisect.bisect_right(history, version, key=lambda each: each.version) :]

    def compact(self) -> None:
        """Forget what happened until now."""
        self.compacted = self.version
        self._history.clear()

    def _record(self, kind: Kind, change: Change) -> None:
        self._history.setdefault(kind, []).append(change)
        self.changed.call(kind, change)


def at_version(obj: Object, version: int) -> Object:
    """Return the same object with that resource version."""
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
