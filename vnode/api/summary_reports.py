"""Tells which annotations of a ClusterSummary its present writer keeps true, and since when.

A writer leaves annotations alone that it does not know. So what a newer vnode has said of rows or
of the scheduler stays when an older one, which does not know them, takes its place. Hence a writer
lists what it keeps, and with which heartbeat: an older one renews the heartbeat, and not the list.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object

_UNLISTED: Final = frozenset(
    {
        keys.AGENT_VERSION,
        keys.HEARTBEAT,
        keys.CLUSTER_NAME,
        keys.CLUSTER_UID,
        keys.CLASSES,
        keys.FREE_RESOURCES,
    }
)
"""What version 0.1 writes, which lists nothing."""


def heartbeat_age(annotations: Object, now: datetime) -> float | None:
    """Return for how many seconds there is the heartbeat of a summary; None if none can be read."""
    beat = objects.parse_timestamp(annotations.get(keys.HEARTBEAT, ""))
    return (now - beat).total_seconds() if beat is not None and beat.tzinfo is not None else None


def listed(annotations: Object) -> Object:
    """Return the annotations of a summary with the list of them."""
    heartbeat = annotations.get(keys.HEARTBEAT, "")
    return {**annotations, keys.KEPT: " ".join((heartbeat, *sorted(annotations)))}


def current(annotations: Object) -> Object:
    """Return the annotations without those of ours that the last writer does not keep."""
    heartbeat, *names = str(annotations.get(keys.KEPT, "")).split(" ")
    is_listed = keys.KEPT in annotations and heartbeat == annotations.get(keys.HEARTBEAT, "")
    kept = {*names, keys.KEPT} if is_listed else _UNLISTED
    return {
        key: value
        for key, value in annotations.items()
        if key in kept or not key.startswith(keys.OWN_PREFIX)
    }
