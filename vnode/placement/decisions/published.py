"""Makes PlacementDecisions of what a policy decides: the clusters of its bound pods. No I/O.

A binding is the decision of vnode, so that is what others are told: for a policy, best first, which
is with the most pods. Others may act on a cluster that comes or goes, and these acts are dear. So a
cluster that has lost its pods is kept for a while, since a rollout may bring them back, and an
order of the same clusters is no news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vnode.api import keys, objects
from vnode.api.durations import TICK
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.planning.cluster_decision import Publishing

CONDITION: Final = "Published"
"""The condition of a policy that publishes, and its reason where that is so."""
SLICE: Final = 100
"""Clusters of one object, at most."""
KEPT: Final = 60.0
"""Seconds for which a cluster without pods stays in the decision."""
SCHEDULER: Final = "vnode"


@dataclass(frozen=True, slots=True)
class PublishingState:
    """Whether the decision of a policy is published; if not, the message says what to do."""

    holds: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be published now, and after how many seconds that may be less."""

    profiles: tuple[str, ...]
    wait: float | None = None


def ranked(pods: Mapping[str, int], profiles: Mapping[str, str]) -> list[str]:
    """Return the profiles of the virtual nodes that have pods, those with the most first."""
    counts: dict[str, int] = {}
    for node, count in pods.items():
        if count > 0 and (profile := profiles.get(node)):
            counts[profile] = counts.get(profile, 0) + count

    return sorted(counts, key=lambda profile: (-counts[profile], profile))


def steady(
    published: Sequence[str], best: Sequence[str], since: dict[str, float], now: float
) -> Wanted:
    """Return what to publish in place of what is: clusters that have no pods go after a while.

    `since` keeps, from call to call, since when that is so.
    """
    lost = set(published).difference(best)
    for profile in lost:
        since.setdefault(profile, now)

    for profile in since.keys() - lost:
        del since[profile]

    kept = [profile for profile in published if now - since.get(profile, now) < KEPT - TICK]
    kept = [profile for profile in kept if profile in since]
    waits = [KEPT - (now - since[profile]) for profile in kept]
    return Wanted((*best, *kept), min(waits, default=None))


def slices(policy: Object, kind: Kind, where: Publishing, profiles: Sequence[str]) -> Objects:
    """Build the objects of a decision: one at least, of a hundred clusters each."""
    owner = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": objects.name(policy),
        "uid": objects.uid(policy),
        "controller": True,
    }
    return [
        {
            "metadata": {
                "name": f"{where.name}-{index}",
                "namespace": where.namespace,
                "labels": {
                    keys.DECISION_KEY: where.name,
                    keys.DECISION_INDEX: str(index),
                    keys.PUBLISHED_BY: objects.uid(policy),
                },
                "ownerReferences": [owner],
            },
            "schedulerName": SCHEDULER,
            "decisions": [_entry(profile) for profile in part],
        }
        for index, part in enumerate(_parts(profiles))
    ]


def listed(found: Iterable[Object]) -> tuple[str, ...]:
    """Return the profiles in the objects of a decision, in their order."""
    ordered = sorted(found, key=_index)
    entries = [entry for obj in ordered for entry in obj.get("decisions") or ()]
    return tuple(dict.fromkeys(filter(None, map(_key, entries))))


def is_whole(found: Iterable[Object], where: Publishing) -> bool:
    """Tell whether these objects are a decision that is published there, without a gap."""
    objs = list(found)
    place = where.namespace, where.name
    are_there = all(
        (objects.namespace(obj), objects.labels(obj).get(keys.DECISION_KEY)) == place
        and not objects.is_terminating(obj)
        for obj in objs
    )
    return bool(objs) and are_there and sorted(map(_index, objs)) == list(range(len(objs)))


def differs(present: Object, wanted: Object) -> bool:
    """Tell whether an object that is ours has to be written again."""
    labels, ours = objects.labels(present), objects.labels(wanted)
    fields = ("decisions", "schedulerName")
    return any(present.get(field) != wanted[field] for field in fields) or any(
        labels.get(key) != value for key, value in ours.items()
    )


def _index(obj: Object) -> int:
    text = objects.labels(obj).get(keys.DECISION_INDEX, "")
    return int(text) if text.isdecimal() and len(text) < 7 else -1


def _parts(profiles: Sequence[str]) -> list[Sequence[str]]:
    found = [profiles[start : start + SLICE] for start in range(0, len(profiles), SLICE)]
    return found or [()]


def _entry(profile: str) -> Object:
    namespace, name = objects.split_key(profile)
    return {"clusterProfileRef": {"namespace": namespace, "name": name}}


def _key(entry: Any) -> str:
    reference = entry.get("clusterProfileRef") if isinstance(entry, dict) else None
    if not isinstance(reference, dict):
        return ""

    return objects.join_key(str(reference.get("namespace", "")), str(reference.get("name", "")))
