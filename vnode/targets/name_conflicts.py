"""Finds chaperons in a target that bear the name of this cluster and come from another one.

Two sources of one name see each other's chaperons there. Each leaves the other's alone, because it
compares the UID of the parent cluster as well; but quotas, dashboards and Admiralty peers go by the
name alone, so the administrator who chose it should know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Final

from vnode.api import enumeration, keys, objects, status_conditions
from vnode.api.objects import Object
from vnode.targets import conditions

_NAMED: Final = 3  # clusters in a message
_LENGTH: Final = 63  # characters of each: the target wrote them
_COUNTED: Final = 100  # clusters; a target may make up any number


class NameConflicts:
    """Counts the chaperons of each other cluster; `on_chaperon` is subscribed to the informer of
    ours."""

    def __init__(self, own_uid: str, changed: Callable[[], None]) -> None:
        self._own_uid = own_uid
        self._changed = changed  # called when a cluster appears or disappears
        self._origins: dict[str, str] = {}  # chaperon -> cluster UID, of other clusters only
        self._counts: Counter[str] = Counter()  # how often each UID is in _origins; none is zero

    @property
    def clusters(self) -> list[str]:
        """The UIDs of the other clusters, sorted."""
        return sorted(self._counts)

    def on_chaperon(self, old: Object | None, new: Object | None) -> None:
        """Count a change; a subscriber of informers."""
        key = objects.key(objects.latest(old, new))
        before, origin = self._origins.pop(key, ""), self._origin(new) if new else ""
        if origin and not (origin in self._counts or len(self._counts) < _COUNTED):
            origin = ""

        if origin:
            self._origins[key] = origin

        if before != origin:
            self._recount(before, origin)

    def _recount(self, before: str, origin: str) -> None:
        changed = False
        if origin:
            self._counts[origin] += 1
            changed = self._counts[origin] == 1

        if before:
            self._counts[before] -= 1
            if not self._counts[before]:
                del self._counts[before]
                changed = True

        if changed:
            self._changed()

    def _origin(self, chaperon: Object) -> str:
        """Return the UID of the cluster that it comes from, "" if that is ours or unknown."""
        cluster = objects.annotations(chaperon).get(keys.PARENT_CLUSTER_UID, "")
        return "" if cluster == self._own_uid else cluster


def condition(target: Object, name: str, clusters: list[str], now: datetime) -> Object | None:
    """Build the condition ClusterNameUnique; None if there was no conflict, and is none."""
    type_ = conditions.CLUSTER_NAME_UNIQUE
    if not clusters and objects.condition(target, type_) is None:
        return None

    return status_conditions.build(target, type_, *explain(name, clusters), now)


def explain(name: str, clusters: list[str]) -> tuple[bool, str, str]:
    """Return (status, reason, message with the cure) of the condition ClusterNameUnique."""
    if not clusters:
        return True, "NoOtherSeen", f"no other cluster is seen to send pods as {name!r}"

    others = enumeration.some([cluster[:_LENGTH] for cluster in clusters], _NAMED)
    return (
        False,
        "ClusterNameTaken",
        (
            f"another cluster sends pods to this target under the name {name!r} too (UID of its "
            f"kube-system namespace: {others}): start the agent of one of them with another "
            "--cluster-name, and run vnode connect again with the same"
        ),
    )
