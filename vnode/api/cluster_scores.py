"""Reads scores of clusters, which others write, into one model. Pure.

Two kinds have them. A ClusterScore is vnode's own and names its target; an AddOnPlacementScore, of
Open Cluster Management, is in the namespace of its ManagedCluster. Both list names with values from
-100 to 100, and may say until when these hold. A score that is not there, has ended or is out of
range has no value, and `FoundScore.why` tells people which of these it is.

Nothing here looks at a clock: an object that has ended is kept, and asked with the present time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey

LOWEST: Final = -100
HIGHEST: Final = 100
MOST: Final = 256
"""So many scores of an object are read, and no more."""
_LONGEST: Final = 253  # characters of a name


@dataclass(frozen=True, slots=True)
class FoundScore:
    """A score at one moment."""

    value: int | None
    """None if there is none that counts."""
    why: str = ""
    """Why there is none, for people."""
    reason: str = ""
    """Likewise, in one word."""
    until: datetime | None = None
    """When the value ends; None: never, or there is none."""


@dataclass(frozen=True, slots=True)
class ScoreObject:
    """What one object says of one cluster."""

    reference: str
    """For people, as kubectl writes it: `clusterscore/price-berlin`."""
    values: Mapping[str, int]
    wrong: Mapping[str, str]
    """By name: why a score does not count that the object has."""
    until: datetime | None = None
    """When all of its scores end; None: never."""
    problem: str = ""
    """Why none of its scores counts."""

    def find(self, name: str, now: datetime) -> FoundScore:
        """Return the score of that name at a moment."""
        if self.problem:
            return FoundScore(None, f"score {name} {self.problem}", "ScoreInvalid")

        if name in self.wrong:
            return FoundScore(None, f"score {name} {self.wrong[name]}", "ScoreInvalid")

        if name not in self.values:
            return _missing(name, f"{self.reference} has none of that name")

        if self.until is not None and self.until <= now:
            ended = objects.timestamp(self.until)
            why = f"score {name} of {self.reference} expired at {ended}"
            return FoundScore(None, why, "ScoreExpired")

        return FoundScore(self.values[name], until=self.until)

    def counts(self, now: datetime) -> bool:
        """Tell whether its scores count at a moment, but for those that are wrong."""
        return not self.problem and (self.until is None or self.until > now)


@dataclass(frozen=True, slots=True)
class TargetScores:
    """All scores of one target."""

    cluster: str = ""
    """What Open Cluster Management calls it: the namespace of its AddOnPlacementScores."""
    add_ons: Mapping[str, ScoreObject] = field(default_factory=dict)
    """Its AddOnPlacementScores, by name."""
    own: tuple[ScoreObject, ...] = ()
    """Its ClusterScores, the oldest first."""
    no_add_ons: str = ""
    """Why no AddOnPlacementScores are known."""
    no_own: str = ""
    """Why no ClusterScores are known."""

    def of_add_on(self, resource: str, name: str, now: datetime) -> FoundScore:
        """Return a score of the AddOnPlacementScore of that name."""
        if self.no_add_ons:
            return FoundScore(
                None, f"score {name} is not known: {self.no_add_ons}", "ScoresUnknown"
            )

        found = self.add_ons.get(resource)
        if found is None:
            where = f"in namespace {self.cluster}"
            return _missing(name, f"there is no AddOnPlacementScore {resource} {where}")

        return found.find(name, now)

    def of_own(self, name: str, now: datetime) -> FoundScore:
        """Return a score by ClusterScores: that of the oldest that has it and holds."""
        if self.no_own:
            return _unknown(name, self.no_own)

        listed = [each for each in self.own if name in each.values or name in each.wrong]
        found = [each.find(name, now) for each in listed]
        for each in found:
            if each.value is not None:
                return each

        return found[0] if found else _missing(name, "no ClusterScore has it for this target")

    def counting(self, now: datetime) -> tuple[object, ...]:
        """Return what is equal as long as all scores that count are, whenever they end."""
        add_ons = {key: each.values for key, each in self.add_ons.items() if each.counts(now)}
        return add_ons, [each.values for each in self.own if each.counts(now)]


NO_SCORES: Final = TargetScores()


def read_add_on(obj: Object) -> ScoreObject:
    """Read an AddOnPlacementScore."""
    return _read(kinds.ADDON_PLACEMENT_SCORES, obj, objects.status(obj))


def read_own(obj: Object) -> tuple[TargetKey | None, ScoreObject]:
    """Read a ClusterScore, and which target it is of; None if it names none."""
    target = objects.spec(obj).get("target")
    found = _read(kinds.CLUSTER_SCORES, obj, objects.spec(obj))
    if not isinstance(target, dict):
        return None, found

    namespace, name = target.get("namespace") or "", target.get("name")
    if not isinstance(namespace, str) or not isinstance(name, str) or not name:
        return None, found

    return TargetKey(namespace, name), found


def oldest_first(found: Iterable[Object]) -> list[Object]:
    """Sort objects by age, those of one second by name."""
    return sorted(found, key=lambda obj: (objects.created(obj), objects.name(obj)))


def _read(kind: Kind, obj: Object, said: Any) -> ScoreObject:
    reference = f"{kind.kind.lower()}/{objects.key(obj)}"
    said = said if isinstance(said, dict) else {}
    values: dict[str, int] = {}
    wrong: dict[str, str] = {}
    listed = said.get("scores")
    for entry in (listed if isinstance(listed, list) else ())[:MOST]:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST:
            continue

        if name in values or name in wrong:
            continue  # the first counts, as in a list that is keyed by name

        value = entry.get("value")
        if isinstance(value, int) and not isinstance(value, bool) and LOWEST <= value <= HIGHEST:
            values[name] = value
        else:
            wrong[name] = f"of {reference} is no integer from {LOWEST} to {HIGHEST}"

    until, problem = _until(said.get("validUntil"))
    if problem:
        problem = f"of {reference} does not count: {problem}"

    return ScoreObject(reference, values, wrong, until, problem)


def _until(text: Any) -> tuple[datetime | None, str]:
    if text is None:
        return None, ""

    moment = objects.parse_timestamp(text) if isinstance(text, str) else None
    if moment is None or moment.tzinfo is None:
        return None, "its validUntil is no time such as 2026-01-31T12:00:00Z"

    try:
        return moment.astimezone(UTC), ""
    except OverflowError:  # the first or the last year, in a zone that has another one
        return None, "its validUntil is out of range"


def _missing(name: str, why: str) -> FoundScore:
    return FoundScore(None, f"score {name} is missing: {why}", "ScoreMissing")


def _unknown(name: str, why: str) -> FoundScore:
    return FoundScore(None, f"score {name} is not known: {why}", "ScoresUnknown")
