"""Knows the pods of a workload that their owner replaces only once they are gone, as a StatefulSet.

Until then there is no pod to be planned for, and yet there will be one, under the same name. So
they are awaited for a while: as long as they may take to end, and then as long as an owner takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.planning.failover import OWNER
from vnode.planning.move_policy import STARTING

KEPT: Final = 1_000
"""Deleted pods of a workload that are known, the latest."""


@dataclass(frozen=True, slots=True)
class DeletedReplica:
    """A pod that its owner replaces only once it is gone, and has not replaced yet."""

    name: str
    ends_at: float
    """When it is to have ended, in seconds of the wall clock."""
    is_gone: bool = False

    def is_awaited(self, now: float) -> bool:
        """Tell whether the pod that replaces it may be awaited: for a while."""
        return now - self.ends_at < (OWNER if self.is_gone else STARTING)


def is_replaced_when_gone(pod: Object) -> bool:
    """Tell whether the owner of a pod makes another one only once it is gone, under its name."""
    return (objects.controller_reference(pod) or {}).get("kind") == "StatefulSet"


class DeletedReplicas:
    """Those of one workload that were not replaced yet; some that nobody awaits any more."""

    def __init__(self) -> None:
        self._by_uid: dict[str, DeletedReplica] = {}  # the first to be deleted comes first
        self._of_name: dict[str, set[str]] = {}  # UIDs of `_by_uid`; no empty sets

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[DeletedReplica]:
        return iter(self._by_uid.values())

    def add(self, pod: Object) -> None:
        """Await the replacement of a pod that ends."""
        moment = objects.parse_timestamp(str(objects.metadata(pod).get("deletionTimestamp")))
        uid, name = objects.uid(pod), objects.name(pod)
        self._by_uid[uid] = DeletedReplica(name, moment.timestamp() if moment else 0.0)
        self._of_name.setdefault(name, set()).add(uid)
        if len(self._by_uid) > KEPT:
            self._drop(next(iter(self._by_uid)))

    def note_gone(self, uid: str) -> None:
        """Note that one of them is gone, whose replacement is to come now."""
        if (known := self._by_uid.get(uid)) is not None:
            self._by_uid[uid] = replace(known, is_gone=True)

    def note_new(self, pod: Object) -> None:
        """Await no longer what a new pod replaces, nor what was to be replaced long before it."""
        for uid in tuple(self._of_name.get(objects.name(pod), ())):
            self._drop(uid)

        created = objects.parse_timestamp(objects.created(pod)) if self._by_uid else None
        while self._by_uid and created is not None:
            first = next(iter(self._by_uid))
            if self._by_uid[first].is_awaited(created.timestamp()):
                break

            self._drop(first)

    def _drop(self, uid: str) -> None:
        name = self._by_uid.pop(uid).name
        uids = self._of_name[name]
        uids.discard(uid)
        if not uids:
            del self._of_name[name]
