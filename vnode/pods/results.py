"""Tells results of pods: ends of delegates that nobody has asked for. Pure.

A delegate that ends because it was deleted ends with a phase, too, but its pod has to be replaced.
A result stays as the chaperon tells it, whatever becomes of the delegate (docs/decisions/0067).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from vnode.api import disruptions, keys, objects, permissions
from vnode.api.objects import Object

_NODE_GONE: Final = "DeletionByPodGC"  # the reason of a condition


def is_told(chaperon: Object) -> bool:
    """Tell whether a chaperon has the result of its pod; one that was never allowed did not run."""
    annotations = objects.annotations(chaperon)
    deleted = keys.DELEGATE_DELETED in annotations or not permissions.is_allowed(chaperon)
    return objects.is_finished(chaperon) and not deleted


def is_late(chaperon: Object, pod: Object) -> bool:
    """Tell whether a delegate came after the result that its chaperon tells, which another one had.

    The request that made it was carried out long after whoever sent it had given up, and made the
    other one. A pod that has ended never has another phase.
    """
    phase, told = objects.status(pod).get("phase"), objects.status(chaperon).get("phase")
    return is_told(chaperon) and phase != told


def had_ended(pod: Object, seen: bool | None = None) -> bool:
    """Tell whether a terminating delegate had ended by itself before it was deleted.

    `seen` is what was seen of that, if anything was. Else times say so: an API server that deletes
    a pod that has ended grants it no grace period. A pod that Kubernetes itself fails and deletes,
    since its node is gone, has not ended: nobody knows how it would have.
    """
    if not objects.is_finished(pod) or disruptions.of(pod).get("reason") == _NODE_GONE:
        return False

    metadata = objects.metadata(pod)
    if seen is not None or metadata.get("deletionGracePeriodSeconds"):
        return bool(seen)

    asked = objects.parse_timestamp(str(metadata.get("deletionTimestamp")))
    stopped = [moment for entry in _containers(pod) if (moment := _stopped_at(entry))]
    return asked is None or all(moment <= asked for moment in stopped)


def _containers(pod: Object) -> Iterator[Object]:
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        yield from objects.status(pod).get(field) or ()


def _stopped_at(entry: Object) -> datetime | None:
    terminated = (entry.get("state") or {}).get("terminated") or {}
    return objects.parse_timestamp(str(terminated.get("finishedAt")))
