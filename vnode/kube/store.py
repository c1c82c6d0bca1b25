"""Stores the objects of an informer by key, with indexes.

Readers get the stored objects themselves and must not change them. An index function returns the
values under which an object is found. Indexes are updated with every change, so that the cost of a
look-up depends only on what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, ValuesView
from itertools import islice
from typing import TypeAlias

from vnode.api import objects
from vnode.api.objects import Object, Objects

IndexFunction = Callable[[Object], Iterable[str]]

_Index: TypeAlias = dict[str, str | set[str]]
"""Value -> keys of the stored objects with that value; no empty sets.

Most values are of one object, such as a UID: that has its key alone, for a set takes 200 bytes."""


class Store:
    """Stores objects of one kind by `namespace/name`."""

    def __init__(self, indexes: Mapping[str, IndexFunction] | None = None) -> None:
        self._objects: dict[str, Object] = {}
        self._functions = dict(indexes or {})
        self._indexes: dict[str, _Index] = {name: {} for name in self._functions}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def get(self, key: str) -> Object | None:
        """Return the object of that key, or None."""
        return self._objects.get(key)

    def values(self) -> ValuesView[Object]:
        """Return a view of all objects; do not await while iterating."""
        return self._objects.values()

    def by_index(self, index: str, value: str, most: int | None = None) -> Objects:
        """Return the objects with that value in the index, ordered by key.

        With `most` they are so many at most, whichever: sorting takes long where somebody else
        decides how many there are.
        """
        keys = self._indexes[index].get(value, ())
        found = [keys] if isinstance(keys, str) else sorted(islice(keys, most))
        return [self._objects[key] for key in found]

    def has(self, index: str, value: str) -> bool:
        """Tell whether an object has that value in the index."""
        return value in self._indexes[index]

    def values_of(self, index: str) -> list[str]:
        """Return the values that any object has in the index."""
        return list(self._indexes[index])

    def put(self, obj: Object) -> Object | None:
        """Store an object; return the one that it replaces."""
        key = objects.key(obj)
        old = self._objects.get(key)
        self._objects[key] = obj
        for name, function in self._functions.items():
            self._move(self._indexes[name], key, function(old) if old else (), function(obj))

        return old

    def pop(self, key: str) -> Object | None:
        """Remove an object and return it; None if it was not stored."""
        old = self._objects.pop(key, None)
        if old is not None:
            for name, function in self._functions.items():
                self._move(self._indexes[name], key, function(old), ())

        return old

    @staticmethod
    def _move(index: _Index, key: str, before: Iterable[str], after: Iterable[str]) -> None:
        old, new = set(before), set(after)
        for value in old - new:
            _drop(index, value, key)

        for value in new - old:
            _add(index, value, key)


def _add(index: _Index, value: str, key: str) -> None:
    keys = index.setdefault(value, key)
    if isinstance(keys, set):
        keys.add(key)
    elif keys != key:
        index[value] = {keys, key}


def _drop(index: _Index, value: str, key: str) -> None:
    keys = index[value]
    if isinstance(keys, set) and len(keys) > 1:
        keys.discard(key)
    else:
        del index[value]
