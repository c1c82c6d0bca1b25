"""Reads and extends the path of a pod through a chain of clusters, and decides whether it may go
on.

A delegate may itself become a proxy, so that its containers run one cluster further. Clusters are
known by the UID of their kube-system namespace. A chaperon names the cluster that created it, and,
from the second step on, all those before it. That comes from other clusters, so it is bounded, and
a pod whose path cannot be read goes no further. No cluster sends on a pod that has been there
before: whatever the others say, a pod cannot go round in a circle.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object

LIMIT: Final = 8
"""The number of clusters that a pod can pass through, the first and the last included."""

_LONGEST: Final = 64  # characters of a cluster's UID, which has 36


def is_delegate(pod: Object) -> bool:
    """Tell whether a PodChaperon owns the pod: a cluster, perhaps this one, sent it."""
    owner = objects.controller_reference(pod)
    return owner is not None and owner.get("kind") == kinds.POD_CHAPERONS.kind


def path_of(obj: Object) -> tuple[str, ...]:
    """Return the clusters that a chaperon or delegate came through, the first one first.

    Raises ConfigError if the annotation is not in the form that agents write.
    """
    annotations = objects.annotations(obj)
    text, sender = annotations.get(keys.PATH), annotations.get(keys.PARENT_CLUSTER_UID)
    path = tuple(text.split(",", LIMIT)) if text is not None else ()
    if sender and sender not in path:
        path = (*path, sender)

    if len(path) > LIMIT or not all(0 < len(uid) <= _LONGEST for uid in path):
        raise ConfigError(f"annotation {keys.PATH} is not one that an agent wrote")

    return path


def extend(obj: Object, here: str, there: str | None = None) -> str:
    """Return `keys.PATH` for what cluster `here` makes of a delegate, or its chaperon, for `there`.

    `there` may be unknown (None). Raises ConfigError, with the reason, if it must not be sent on.
    """
    annotations, path = objects.annotations(obj), path_of(obj)
    if keys.FORWARD not in annotations and keys.ELECT not in annotations:
        raise ConfigError(
            f"the pod came from another cluster, and does not ask to be sent on: annotate it with "
            f"{keys.FORWARD} where it is created, or keep it off virtual nodes here"
        )

    if here in path:
        raise ConfigError("the pod has been in this cluster before, so it stays here")

    if there is not None and there in path:
        raise ConfigError(CAME_THROUGH)

    if len(path) + 2 > LIMIT:  # this cluster, and the next
        raise ConfigError(f"the pod came through {len(path)} clusters already: {LIMIT} in all")

    return ",".join((*path, here))


CAME_THROUGH: Final = "the pod came through that cluster"
