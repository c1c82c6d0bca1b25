"""Merges annotations, which both sides write: the newer of two values that differ wins. Pure.

The proxy's annotations go to the delegate, and the delegate's come back to the proxy. Each side
may change any of them at any time, so two values do not tell which one is newer. The value that
both sides last agreed on does: what the source last sent (a record on the chaperon), or what the
target last sent back (a record on the proxy, written in the same patch as the value). The side that
differs from it has changed the annotation; if both have, the source wins.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import msgspec

from vnode.api import cluster_bound, documents, keys, objects
from vnode.api.objects import TOTAL_ANNOTATION_SIZE, Object
from vnode.pods import travel_size

_VALUES: Final = 4 * travel_size.MOST  # annotations, labels and the rest of a record


@dataclass(frozen=True, slots=True)
class MergedAnnotations:
    """Merge patches of annotations, and what the source's record must be after them.

    `down` goes to the chaperon, `up` to the proxy, with the record of what was fed back in it.
    """

    down: Object
    sent: Object
    up: Object


def settle(
    proxy: Object, chaperon: Object, sent: Object, apart: Collection[str] = ()
) -> MergedAnnotations:
    """Merge a bound proxy's annotations with its chaperon's; `sent` is what the source sent last.

    Only annotations of others: those of vnode and Admiralty belong to the object they are on, and
    those of a queue to the cluster they are in. Nor those `apart`, of which each side has its own.
    What a target makes of some does not come back (`cluster_bound.comes_back`). If either side has
    too many to look at each, all stay as they are.
    """
    source, target = objects.annotations(proxy), objects.annotations(chaperon)
    known = read(proxy, keys.FED_BACK)
    if not all(map(travel_size.is_small, (source, target, sent, known))):
        return MergedAnnotations({}, dict(sent), {})

    fed, sent, down, up = dict(known), dict(sent), {}, {}
    names = _unequal(source, target, sent) | known.keys()
    for key in filter(keys.travels, names.difference(apart)):
        ours, theirs = source.get(key), target.get(key)
        agreed = known[key] if key in known else sent.get(key)
        if ours == theirs:
            _agree(key, ours, agreed, sent, fed)
        elif ours == agreed:
            if cluster_bound.comes_back(key):
                up[key] = fed[key] = theirs
        else:
            down[key] = ours
            _put(sent, key, ours)

    if fed != known:
        up[keys.FED_BACK] = text(fed) if fed else None

    return MergedAnnotations(down, sent, up)


def _unequal(source: Object, target: Object, sent: Object) -> set[str]:
    """Return the annotations that are not the same on both sides and in the record.

    A pod may have tens of thousands, of which hardly one differs.
    """
    present = source.items()
    unequal = {key for key, own in present if not own == target.get(key) == sent.get(key)}
    return unequal | (target.keys() - source.keys()) | (sent.keys() - source.keys())


def _agree(key: str, value: str | None, agreed: str | None, sent: Object, fed: Object) -> None:
    """Make the records agree with a value that both sides have, and record no more than needed."""
    if value == sent.get(key):
        fed.pop(key, None)
    elif value != agreed:
        fed[key] = value


def _put(record: Object, key: str, value: str | None) -> None:
    if value is None:
        record.pop(key, None)
    else:
        record[key] = value


def foreign(obj: Object) -> Object:
    """Return the annotations of others on an object."""
    return {k: v for k, v in objects.annotations(obj).items() if keys.is_foreign(k)}


def own(proxy: Object, first: Object) -> Object:
    """Return the annotations of others that a proxy has of its source: none of those fed back.

    In place of those it has what it had at `first`, as its user made it. A target that gets the pod
    next must not have them; an owner may even have copied them to a new pod, with the record.
    """
    fed, present, before = read(proxy, keys.FED_BACK), foreign(proxy), foreign(first)
    theirs = {key for key in fed if present.get(key) == fed[key]}
    given = {key: before[key] for key in theirs if key in before} if first is not proxy else {}
    return {key: value for key, value in present.items() if key not in theirs} | given


def read(obj: Object, key: str) -> Object:
    """Return the JSON object in an annotation of ours; empty if there is none, or it was spoilt."""
    value = objects.annotations(obj).get(key)
    if not value:
        return {}

    # It may also be a target's, or a user's: 85,000 empty lists fit into an annotation.
    if len(value) > TOTAL_ANNOTATION_SIZE or not documents.has_at_most(
        _VALUES, value.encode(errors="replace")
    ):
        return {}

    try:
        record = documents.decode(value)
    except documents.NO_JSON:
        return {}

    return record if isinstance(record, dict) else {}


def text(record: Object) -> str:
    """Return a record as an annotation; equal records give equal text."""
    return msgspec.json.encode(record, order="deterministic").decode()
