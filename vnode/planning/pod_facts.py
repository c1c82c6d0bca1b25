"""Says of a pod what moves look at, which one version of it never changes. Pure.

A workload may have thousands of pods, and is looked at again after each step. So it is found out
once for each version of a pod.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey, owner_key
from vnode.gangs import membership


class PodFacts(NamedTuple):
    """What moves look at of one version of a pod."""

    created: datetime | None
    ready: bool
    overflowed: bool
    """It is bound elsewhere than it was planned."""
    movable: bool
    """Its owner replaces it, and may be disturbed."""
    of_job: bool
    """It is movable only for reasons for which pods of Jobs begin their work anew."""
    owner: OwnerKey | None


def facts_of(pod: Object) -> PodFacts:
    """Return what moves look at of a pod."""
    kind = str((objects.controller_reference(pod) or {}).get("kind") or "")
    return PodFacts(
        objects.created_at(pod),
        objects.is_ready(pod),
        has_overflowed(pod),
        _is_movable(pod, kind),
        kind == "Job",
        owner_key(pod),
    )


def has_overflowed(pod: Object) -> bool:
    """Tell whether the pod is bound elsewhere than it was planned."""
    return keys.OVERFLOWED_FROM in objects.annotations(pod)


def _is_movable(pod: Object, kind: str) -> bool:
    """Tell whether the pod's owner, of that kind, replaces it.

    The owner of a pod that came from another cluster is there. The pod of a Job would begin its
    work anew. One of a gang would be apart from the others, which it starts with.
    """
    return membership.of(pod) is None and kind not in ("", "DaemonSet", "PodChaperon")
