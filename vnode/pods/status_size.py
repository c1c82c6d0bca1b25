"""Bounds the size of a delegate's status, and shortens one that is too large. Pure.

Kubernetes takes objects of 1.5 MiB, of which a pod's own spec may take much. A status that does not
fit must not keep a pod from ever showing that it is ready or has ended, so what says least about
that is left out first. What a pod may have grows with its containers, which its source has written:
so a hostile target cannot have each of thousands of small pods take a megabyte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from vnode.api import documents, objects
from vnode.api.errors import ApiError
from vnode.api.objects import Object

_BASE: Final = 128 * 1024
# Two messages of 4 KiB that a container may leave, and some forty mounts of volumes.
_PER_CONTAINER: Final = 16 * 1024
_MOST: Final = 768 * 1024
TIGHT: Final = 64 * 1024
"""The limit, once an API server has said that an object is too large."""

_LISTS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_ESSENCE: Final = frozenset(
    {"name", "image", "imageID", "containerID", "ready", "started", "restartCount", "state"}
)
_REPEATED: Final = frozenset(
    {"volumeMounts", "resources", "allocatedResources", "allocatedResourcesStatus", "user"}
)
_CUT: Final = 256  # characters of a message

MOST_VALUES: Final = 10_000
"""Values of a status that is looked at as it is: a hundred containers with 20 mounts each."""
_LARGEST: Final = 1536 * 1024  # bytes; etcd takes no larger object
_LONGEST: Final = 4096  # characters of a field, where there is too much
_MOST_CONDITIONS: Final = 100
_MOST_CONTAINERS: Final = 1000  # of a kind
_MOST_ENTRIES: Final = {"conditions": _MOST_CONDITIONS, "podIPs": 16, "hostIPs": 16}


def limit(pod: Object) -> int:
    """Return how many bytes of JSON the status of a pod may have; the pod may be trimmed."""
    fields = ("containers", "initContainers", "ephemeralContainers")
    count = sum(len(objects.spec(pod).get(field) or ()) for field in fields)
    return min(_BASE + count * _PER_CONTAINER, _MOST)


def size(status: Object) -> int:
    """Return the bytes of a status as JSON."""
    return len(msgspec.json.encode(status))


def is_excessive(status: Object) -> bool:
    """Tell whether a status has more than any kubelet writes.

    A megabyte may have hundreds of thousands of values, and looking at each takes a second.
    """
    payload = msgspec.json.encode(status)
    return len(payload) > _LARGEST or not documents.has_at_most(MOST_VALUES, payload)


def readable(status: Object) -> Object:
    """Return what of another cluster's status can be looked at in a few milliseconds.

    Of one that has too much, that is what has no parts, the conditions, and how its containers are,
    as long as that is not what there is too much of.
    """
    found = status
    if is_excessive(status):
        conditions = (status.get("conditions") or [])[:_MOST_CONDITIONS]
        flat = {**_flat(status), "conditions": list(map(_flat, conditions))}
        few = (f for f in _LISTS if 0 < len(status.get(f) or ()) <= _MOST_CONTAINERS)
        with_containers = _each({**flat, **{f: status[f] for f in few}}, _essence_of)
        found = flat if is_excessive(with_containers) else with_containers

    long = {k: v[:most] for k, most in _MOST_ENTRIES.items() if isinstance(v := found.get(k), list)}
    return {**found, **long}


def _flat(value: Object) -> Object:
    return {
        k: inner[:_LONGEST] if isinstance(inner, str) else inner
        for k, inner in value.items()
        if not isinstance(inner, dict | list)
    }


def fitting(status: Object, most: int) -> Object:
    """Return a status, shortened as far as is needed to have that many bytes.

    It may still have more: who writes it must look.
    """
    shortened = status
    for shorten in (_without_repeated, _with_short_messages, _essence):
        if size(shortened) <= most:
            break

        shortened = shorten(status)

    return shortened


def is_too_large(error: ApiError) -> bool:
    """Tell whether an API server, or its etcd, refused an object for its size."""
    return error.status == 413 or any(
        words in error.message.lower() for words in ("too large", "larger than max")
    )


def _without_repeated(status: Object) -> Object:
    """Leave out what the specs of containers say as well."""
    return _each(status, lambda e: {k: v for k, v in e.items() if k not in _REPEATED})


def _with_short_messages(status: Object) -> Object:
    cut: Object = _cut(_without_repeated(status))
    return cut


def _essence(status: Object) -> Object:
    return _each(_with_short_messages(status), _essence_of)


def _essence_of(entry: Object) -> Object:
    return {k: v for k, v in entry.items() if k in _ESSENCE}


def _each(status: Object, change: Callable[[Object], Object]) -> Object:
    lists = {field: [change(e) for e in status[field]] for field in _LISTS if status.get(field)}
    return {**status, **lists}


def _cut(value: Any) -> Any:
    """Cut messages, at any depth."""
    if isinstance(value, list):
        return [_cut(inner) for inner in value]

    if not isinstance(value, dict):
        return value

    return {
        key: f"{inner[:_CUT]}..."
        if key == "message" and isinstance(inner, str) and len(inner) > _CUT
        else _cut(inner)
        for key, inner in value.items()
    }
