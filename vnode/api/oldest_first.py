"""Bounds the objects of each namespace that count: the oldest ones do. No I/O.

As with a ResourceQuota, what is there stays, and what comes later does not fit; when an object is
deleted, the next one in order of creation takes its place. Which ones fit depends on the objects
only, not on the order in which an agent hears of them, and a change looks at no other objects.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import NamedTuple

from vnode.api import objects
from vnode.api.objects import Object


class _Rank(NamedTuple):
    """Sorts the objects of a namespace."""

    created: str
    name: str


class OldestFirst:
    """Tells which objects of one kind fit; None as the limit means all."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._ranks: dict[str, list[_Rank]] = {}  # by namespace; sorted, none empty
        self._created: dict[tuple[str, str], str] = {}  # by namespace and name

    def fits(self, namespace: str, name: str) -> bool:
        """Tell whether an object is within the limit; one that is not known is."""
        created = self._created.get((namespace, name))
        if self.limit is None or created is None:
            return True

        return bisect_left(self._ranks[namespace], _Rank(created, name)) < self.limit

    def observe(self, old: Object | None, new: Object | None) -> str | None:
        """Note that an object came or went.

        Return the name of another one of its namespace that fits from now on, or no longer does.
        """
        if old is None and new is not None:
            return self._add(new)

        return self._remove(old) if old is not None and new is None else None

    def _add(self, obj: Object) -> str | None:
        namespace, name = objects.namespace(obj), objects.name(obj)
        rank = _Rank(objects.created(obj), name)
        self._created[namespace, name] = rank.created
        ranks = self._ranks.setdefault(namespace, [])
        insort(ranks, rank)
        if self.limit is None or len(ranks) <= self.limit:
            return None

        last = ranks[self.limit]
        return last.name if rank < last else None

    def _remove(self, obj: Object) -> str | None:
        namespace, name = objects.namespace(obj), objects.name(obj)
        created = self._created.pop((namespace, name), None)
        if created is None:
            return None

        ranks = self._ranks[namespace]
        index = bisect_left(ranks, _Rank(created, name))
        del ranks[index]
        if not ranks:
            del self._ranks[namespace]

        if self.limit is None or not index < self.limit <= len(ranks):
            return None

        return ranks[self.limit - 1].name
