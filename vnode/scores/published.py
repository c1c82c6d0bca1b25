"""Builds the objects in which scores of a target are published, and says when to write them. Pure.

A score that nobody renews ends: `validUntil` is five minutes ahead, so a target that is lost, or an
agent that has died, is no longer praised. What changes is written at once, but no more often than
each half minute; what stays is renewed when two minutes are left.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from vnode.api import cluster_scores, keys, kinds, objects
from vnode.api.cluster_scores import ScoreObject
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.scores.config import ScoreKind

NAME: Final = "vnode-usage"
"""The name of an AddOnPlacementScore, and what begins that of a ClusterScore."""
VALID: Final = 300.0
"""Seconds for which scores are valid."""
RENEWED: Final = 120.0
"""Seconds before their end, at which they are renewed."""
_LONGEST: Final = 253

KINDS: Final[Mapping[ScoreKind, Kind]] = {
    "AddOnPlacementScore": kinds.ADDON_PLACEMENT_SCORES,
    "ClusterScore": kinds.CLUSTER_SCORES,
}


@dataclass(frozen=True, slots=True)
class ScorePlace:
    """The object in which scores of one target are published."""

    kind: Kind
    name: str
    namespace: str
    target: TargetKey

    @property
    def has_status(self) -> bool:
        """Whether scores are in the status, which is written by itself."""
        return self.kind is kinds.ADDON_PLACEMENT_SCORES


def place(kind: ScoreKind, target: TargetKey, cluster: str) -> ScorePlace | None:
    """Return where scores of a target are published as that kind.

    `cluster` is what its inventory says that Open Cluster Management calls it; None if that is
    missing, since a namespace that has the name of a Target may be anybody's.
    """
    if kind == "AddOnPlacementScore":
        where = KINDS[kind]
        return ScorePlace(where, NAME, cluster, target) if cluster else None

    name = f"{NAME}-{target.node_name}"
    if len(name) > _LONGEST:
        digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        name = f"{name[: _LONGEST - 17]}-{digest}"

    return ScorePlace(KINDS[kind], name, "", target)


def is_ours(obj: Object) -> bool:
    """Tell whether an agent has made an object, to publish scores in it."""
    return keys.PUBLISHED_SCORES in objects.labels(obj)


def said(kind: Kind, obj: Object) -> ScoreObject:
    """Return what an object says."""
    if kind is kinds.ADDON_PLACEMENT_SCORES:
        return cluster_scores.read_add_on(obj)

    return cluster_scores.read_own(obj)[1]


def wait(written: ScoreObject | None, scores: Mapping[str, int], now: datetime) -> float:
    """Return the seconds until scores are to be written, 0 for now."""
    if written is None or written.until is None or written.values != scores:
        return 0.0

    return max(0.0, (written.until - now).total_seconds() - RENEWED)


def body(where: ScorePlace, scores: Mapping[str, int], now: datetime) -> Object:
    """Build the object, as it is created, or as a patch; a status is a patch of its own."""
    metadata = {"name": where.name, "labels": {keys.PUBLISHED_SCORES: ""}}
    if where.namespace:
        metadata["namespace"] = where.namespace

    if where.has_status:
        return {"metadata": metadata}

    target = {"name": where.target.name}
    if where.target.namespace:
        target["namespace"] = where.target.namespace

    return {"metadata": metadata, "spec": {"target": target, **section(scores, now)}}


def section(scores: Mapping[str, int], now: datetime) -> Object:
    """Build what an object says of scores."""
    until = objects.timestamp(now + timedelta(seconds=VALID))
    listed = [{"name": name, "value": value} for name, value in sorted(scores.items())]
    return {"scores": listed, "validUntil": until}
