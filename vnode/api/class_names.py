"""The names of classes that a cluster has, as its ClusterSummary lists them for its sources.

A delegate whose RuntimeClass or PriorityClass is not in the target is refused by the API server
there; one that claims devices of a DeviceClass that is not there waits for ever. Sources need no
right to read these kinds: the target's agent says what there is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from vnode.api import documents

_LIMIT: Final = 32 * 1024  # bytes of the annotation, which is in all sources' memory


class PriorityValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a PriorityClass means: its value, and whether its pods preempt no others."""

    value: int
    never: bool = False


_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"  # with the name of any class
_NO_VALUES: Final[Mapping[str, PriorityValue]] = {}


class ClassNames(msgspec.Struct, frozen=True, rename="camel"):
    """Names of RuntimeClasses, PriorityClasses and DeviceClasses; None where they are not known.

    `priorities` has what PriorityClasses mean, by name, of those of which that is known;
    `device_classes` has the extended resource that each stands for, "" for none.
    """

    runtime_classes: frozenset[str] | None = None
    priority_classes: frozenset[str] | None = None
    priorities: Mapping[str, PriorityValue] = _NO_VALUES
    device_classes: Mapping[str, str] | None = None

    @property
    def claimed_resources(self) -> frozenset[str]:
        """The extended resources for which the cluster makes claims of devices.

        Its nodes need not list them.
        """
        classes = self.device_classes or {}
        return frozenset(filter(None, classes.values())) | {_IMPLICIT + name for name in classes}


UNKNOWN: Final = ClassNames()


def encode(
    runtime: Collection[str] | None,
    priority: Collection[str] | None,
    priorities: Mapping[str, PriorityValue] = _NO_VALUES,
    devices: Mapping[str, str] | None = None,
) -> str:
    """Return the text for an annotation, which leaves out a list that is None, or too long.

    The values of PriorityClasses go first, in a field that agents without them skip.
    """
    lists = {"runtimeClasses": runtime, "priorityClasses": priority}
    known: dict[str, Any] = {k: sorted(names) for k, names in lists.items() if names is not None}
    if devices is not None:
        known["deviceClasses"] = dict(sorted(devices.items()))

    if priorities:
        known["priorities"] = dict(sorted(priorities.items()))

    while known:
        text = msgspec.json.encode(known)
        if len(text) <= _LIMIT:
            return text.decode()

        longest = max(known, key=lambda key: len(msgspec.json.encode(known[key])))
        del known["priorities" if "priorities" in known else longest]

    return ""


def decode(text: object) -> ClassNames:
    """Return what such an annotation says; UNKNOWN without one, or if it makes no sense."""
    if not isinstance(text, str) or len(text) > _LIMIT:
        return UNKNOWN

    return _decode(text)


@lru_cache(maxsize=256)  # summaries come every second, with the same text
def _decode(text: str) -> ClassNames:
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except documents.NO_JSON:
        return UNKNOWN

    meanings = found.get("priorities")
    values = {
        name: value
        for name, entry in (meanings if isinstance(meanings, dict) else {}).items()
        if (value := _value(entry)) is not None
    }
    runtime, priority = (_strings(found.get(key)) for key in ("runtimeClasses", "priorityClasses"))
    decoded = ClassNames(runtime, priority, values, _resources(found.get("deviceClasses")))
    return UNKNOWN if decoded == UNKNOWN else decoded


def _strings(listed: Any) -> frozenset[str] | None:
    """Return the names in a list; a bad one hides no other. None if there is no sense in it."""
    if not isinstance(listed, list):
        return None

    found = frozenset(name for name in listed if isinstance(name, str))
    return found if found or not listed else None


def _resources(listed: Any) -> Mapping[str, str] | None:
    """Return the extended resources by class; None if there is no sense in it."""
    if not isinstance(listed, dict):
        return None

    return {
        name: resource if isinstance(resource, str) else "" for name, resource in listed.items()
    }


def _value(entry: Any) -> PriorityValue | None:
    try:
        return msgspec.convert(entry, PriorityValue)
    except msgspec.ValidationError:
        return None
