"""Keeps what a ClusterProfile last said, in the status of a Target that a set has made of it.

A Target by hand ends with its profile, as with a deleted Secret. One of a set is removed in order:
its pods are evicted first, and for that the connection has to last longer than the profile, also
in an agent that starts meanwhile. A profile has no secrets. It is kept in the status because no
user may write that: whoever can write a profile chooses where credentials are sent. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.targets.profiles.profile_references import ProfileReference

FIELD: Final = "lastClusterProfile"
_SETS: Final = ("TargetSet", "ClusterTargetSet")
_LARGEST: Final = 131_072  # characters
_KEPT: Final = ("accessProviders", "credentialProviders", "version", "properties")


def text_of(profile: Object) -> str:
    """Return what is kept of a profile: all but conditions; "" if that is too much."""
    status = objects.status(profile)
    kept = [field for field in _KEPT if field in status]
    for fields in (kept, [field for field in kept if field != "properties"]):
        found = {
            "metadata": {
                "namespace": objects.namespace(profile),
                "name": objects.name(profile),
                "labels": objects.labels(profile),
            },
            "spec": objects.spec(profile),
            "status": {field: _without_moments(status[field]) for field in fields},
        }
        if len(msgspec.json.encode(found)) > _LARGEST:  # at once, which the text below is not
            continue

        text = json.dumps(found, separators=(",", ":"), sort_keys=True)
        if len(text) <= _LARGEST:
            return text

    return ""


def _without_moments(value: Any) -> Any:
    """Leave out when properties were last observed, which is news all the time."""
    if not isinstance(value, list):
        return value

    return [
        {name: part for name, part in entry.items() if name != "lastObservedTime"}
        if isinstance(entry, dict)
        else entry
        for entry in value
    ]


def is_of_set(target: Object) -> bool:
    """Tell whether a set has made a Target, and it is still the set's."""
    name = objects.labels(target).get(keys.TARGET_SET)
    owner = objects.controller_reference(target) or {}
    return bool(name) and owner.get("kind") in _SETS and owner.get("name") == name


def read(target: Object, reference: ProfileReference) -> Object | None:
    """Return the profile that a Target names as it remembers it; None if it does not."""
    text = objects.status(target).get(FIELD)
    if not isinstance(text, str) or not is_of_set(target):
        return None

    try:
        profile = json.loads(text)
    except ValueError:
        return None

    if not isinstance(profile, Mapping):
        return None

    found: Object = dict(profile)
    return found if objects.key(found) == reference.object_key else None
