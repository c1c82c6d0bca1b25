"""Decodes a TargetSet or ClusterTargetSet, strictly: which profiles it selects, and what becomes of
Targets whose profile goes. Pure.

An API server that has the CRDs refuses most of what is wrong here. Each error names the field.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from vnode.api import keys, kinds, objects, strict_decoding
from vnode.api.durations import seconds
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.label_selector import LabelSelector
from vnode.api.objects import Object
from vnode.targetsets import selection
from vnode.targetsets.selection import ProfileSelection

_MOST_A_MINUTE: Final = 600
_WHERE: Final = "spec.profiles.properties"


class RemovalPolicy(enum.Enum):
    """What becomes of a Target whose profile is gone."""

    DRAIN = "Drain"
    """Its virtual node is cordoned, its pods are evicted, and it is deleted."""
    CORDON = "Cordon"
    """Its virtual node is cordoned."""
    ORPHAN = "Orphan"
    """It stays as it is."""


class _SetPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class SelectedProperty(_SetPart, frozen=True):
    """A condition on a property."""

    name: str
    operator: str
    values: tuple[str | int, ...] = ()


class SelectedCondition(_SetPart, frozen=True):
    """A condition of the profile, and its status."""

    type: str
    status: Literal["True", "False", "Unknown"] = "True"


class _Profiles(_SetPart, frozen=True):
    namespace: str = ""
    selector: LabelSelector | None = None
    managers: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    properties: tuple[SelectedProperty, ...] = ()
    conditions: tuple[SelectedCondition, ...] = ()


class _Removal(_SetPart, frozen=True):
    policy: RemovalPolicy = RemovalPolicy.DRAIN
    after: str = "5m"
    max_per_minute: Annotated[int, msgspec.Meta(ge=1, le=_MOST_A_MINUTE)] = 10


class _SetSpec(_SetPart, frozen=True):
    profiles: _Profiles
    removal: _Removal = _Removal()


@dataclass(frozen=True, slots=True)
class TargetSetSpec:
    """A set as it asks to be kept; `after` is in seconds."""

    selection: ProfileSelection
    policy: RemovalPolicy = RemovalPolicy.DRAIN
    after: float = 300.0
    per_minute: int = 10


def kind_of(obj: Object) -> Kind:
    """Return the kind of a set from the API: a TargetSet has a namespace."""
    return kinds.scoped(kinds.TARGET_SETS, objects.namespace(obj))


def target_kind(obj: Object) -> Kind:
    """Return the kind of what a set makes, given the set or one of these."""
    return kinds.scoped(kinds.TARGETS, objects.namespace(obj))


def is_confirmed(obj: Object) -> bool:
    """Tell whether somebody has confirmed what the set, as it is now, removes."""
    generation = str(objects.metadata(obj).get("generation", 0))
    return objects.annotations(obj).get(keys.CONFIRM_REMOVAL) == generation


def removed(obj: Object) -> dict[str, datetime]:
    """Return the Targets that are recorded as removed, and since when their profiles were gone.

    What is not readable counts for nothing: anybody who may write a set may also confirm removals.
    """
    text = objects.annotations(obj).get(keys.REMOVED_TARGETS, "{}")
    try:
        recorded = msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError:
        return {}

    moments = {name: objects.parse_timestamp(since) for name, since in recorded.items()}
    return {name: since for name, since in moments.items() if since is not None}


def removed_text(targets: Mapping[str, datetime]) -> str:
    """Return the text that `removed` reads."""
    moments = {name: objects.timestamp(since) for name, since in sorted(targets.items())}
    return msgspec.json.encode(moments).decode()


def decode(obj: Object) -> TargetSetSpec:
    """Decode a set. Raises ConfigError, which says what to change."""
    raw = obj.get("spec")
    spec = strict_decoding.decode(_SetSpec, {} if raw is None else raw, "spec")
    profiles, own = spec.profiles, objects.namespace(obj)
    if own and profiles.namespace:
        raise ConfigError(
            "spec.profiles.namespace is for a ClusterTargetSet: a TargetSet reads the profiles of "
            "its own namespace; leave it out"
        )

    named = (profiles.managers, profiles.names, profiles.properties, profiles.conditions)
    if profiles.selector is None and not any(named):
        raise ConfigError("spec.profiles selects nothing: write selector: {} for all profiles")

    selector = profiles.selector or LabelSelector()
    return TargetSetSpec(
        ProfileSelection(
            own or profiles.namespace,
            selector.compiled("spec.profiles.selector"),
            frozenset(profiles.managers),
            frozenset(profiles.names),
            tuple(
                selection.compiled(p.name, p.operator, [*map(str, p.values)], f"{_WHERE}[{number}]")
                for number, p in enumerate(profiles.properties)
            ),
            frozenset((each.type, each.status) for each in profiles.conditions),
        ),
        spec.removal.policy,
        seconds(spec.removal.after, "spec.removal.after"),
        spec.removal.max_per_minute,
    )
