"""Builds JSON patches (RFC 6902), member by member.

Only a difference becomes an operation, so that a second pass over a patched object is empty and
everything that is not named survives byte for byte.
"""

from __future__ import annotations

from typing import Any

from vnode.api.objects import Object


class Patch:
    """The operations that turn one object into another; `obj` itself is never changed."""

    def __init__(self, obj: Object) -> None:
        self.operations: list[Object] = []
        self._obj = obj
        self._made: set[tuple[str, ...]] = set()  # parents that an earlier operation creates

    def set(self, value: Any, *path: str) -> None:
        """Make the member at `path` equal to `value`; missing parents are created."""
        for depth in range(1, len(path)):
            self._ensure(path[:depth])

        if self._at(path) != value:
            self._add(value, path)

    def remove(self, *path: str) -> None:
        """Make sure that there is no member at `path`."""
        parent = self._at(path[:-1])
        if isinstance(parent, dict) and path[-1] in parent:
            self.operations.append({"op": "remove", "path": pointer(path)})

    def _ensure(self, path: tuple[str, ...]) -> None:
        if self._at(path) is None and path not in self._made:
            self._made.add(path)
            self._add({}, path)

    def _add(self, value: Any, path: tuple[str, ...]) -> None:
        """Add or replace a member: `add` does both (RFC 6902, 4.1)."""
        self.operations.append({"op": "add", "path": pointer(path), "value": value})

    def _at(self, path: tuple[str, ...]) -> Any:
        value: Any = self._obj
        for name in path:
            if not isinstance(value, dict):
                return None

            value = value.get(name)

        return value


def pointer(path: tuple[str, ...]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)
