"""Says which scores of clusters count, and how much: the words of configuration and policies. Pure.

A weighted score makes clusters better or worse, by a weight from -10 to 10; a condition leaves
clusters out. Both name where a value comes from: an object with scores (`cluster_scores`), a
property that an inventory has for the cluster, or what the cluster has free now.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec

from vnode.api import properties
from vnode.api.errors import ConfigError
from vnode.api.label_selector import LabelSelector
from vnode.api.properties import PropertyRequirement
from vnode.api.selectors import Selector

MOST_TERMS: Final = 16
"""Weighted scores, and conditions, at most."""
_EVERY_POD: Final = Selector()
_SIGNS: Final = {"Gt": ">", "Ge": ">=", "Lt": "<", "Le": "<="}


class ScoreSource(enum.Enum):
    """Where a value comes from."""

    CLUSTER_SCORE = "ClusterScore"
    """The ClusterScores of the target."""
    ADD_ON = "AddOn"
    """An AddOnPlacementScore of Open Cluster Management."""
    PROPERTY = "Property"
    """A property of the target's ClusterProfile that is a quantity."""
    FREE = "Free"
    """What the target has free of a resource, less what was promised."""


class FreeScope(enum.Enum):
    """Of which part of a cluster it is said how much is free."""

    CLUSTER = "Cluster"
    NODE = "Node"
    """The node that has the most."""


class MissingScore(enum.Enum):
    """What a weighted score is where there is none that counts."""

    NEUTRAL = "Neutral"
    """0, the middle."""
    WORST = "Worst"
    """Whatever is worst by the weight: -100, or 100 where that is negative."""
    EXCLUDE = "Exclude"
    """The cluster is left out."""


class MissingCondition(enum.Enum):
    """Whether a cluster stays of which a condition finds no value."""

    REJECT = "Reject"
    ACCEPT = "Accept"


@dataclass(frozen=True, slots=True)
class ScoreReference:
    """Names a value."""

    source: ScoreSource
    name: str
    resource: str = ""
    """Of an AddOnPlacementScore: its name."""
    scope: FreeScope = FreeScope.CLUSTER

    @property
    def is_absolute(self) -> bool:
        """Whether it is a score already, and not an amount to be compared with those of others."""
        return self.source in (ScoreSource.CLUSTER_SCORE, ScoreSource.ADD_ON)

    @property
    def text(self) -> str:
        """What messages call it."""
        match self.source:
            case ScoreSource.PROPERTY:
                return f"property {self.name}"
            case ScoreSource.FREE:
                where = " on one node" if self.scope is FreeScope.NODE else ""
                return f"free {self.name}{where}"
            case _:
                return f"score {self.name}"


@dataclass(frozen=True, slots=True)
class ConcernedPods:
    """Which pods a value counts for: by default all."""

    requesting: str = ""
    """Those that request this resource; "": whatever they request."""
    selector: Selector = _EVERY_POD
    """Those with such labels."""

    def include(self, labels: Mapping[str, str], requests: Mapping[str, int]) -> bool:
        """Tell whether a pod with such labels and requests is one of them."""
        if self.requesting and not requests.get(self.requesting):
            return False

        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """A value that makes clusters better or worse."""

    of: ScoreReference
    pods: ConcernedPods
    weight: int
    missing: MissingScore = MissingScore.NEUTRAL


@dataclass(frozen=True, slots=True)
class ScoreCondition:
    """A value by which clusters are left out."""

    of: ScoreReference
    pods: ConcernedPods
    required: PropertyRequirement
    """Its amounts are in nano-units, also of scores."""
    asked: str
    """What it asks for, as messages say it: `>= 20`."""
    missing: MissingCondition = MissingCondition.REJECT

    def admits(self, amount: int | None) -> bool:
        """Tell whether a value in nano-units satisfies it; None is one that is missing."""
        if amount is None and self.missing is MissingCondition.ACCEPT:
            return True

        return self.required.admits(amount)


class _ReferenceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: ScoreSource
    name: str
    resource: str | None = None
    scope: FreeScope | None = None
    requesting: str = ""
    pod_selector: LabelSelector = msgspec.field(name="podSelector", default=LabelSelector())


class WeightedScoreSpec(_ReferenceSpec, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A weighted score as people write it."""

    weight: Annotated[int, msgspec.Meta(ge=-10, le=10)] = 1
    """0 turns it off."""
    missing: MissingScore = MissingScore.NEUTRAL


class ScoreConditionSpec(_ReferenceSpec, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A condition as people write it; operators are those of `properties`."""

    operator: str
    values: tuple[str | int | float, ...] = ()
    missing: MissingCondition | None = None


def weighted(specs: Iterable[WeightedScoreSpec], where: str) -> tuple[WeightedScore, ...]:
    """Compile weighted scores. Raises ConfigError, with the cure, if one is wrong."""
    made: list[WeightedScore] = []
    for number, spec in enumerate(specs):
        of = _compiled(spec, f"{where}[{number}]")
        pods = _concerned(spec, f"{where}[{number}]")
        if any((each.of, each.pods) == (of, pods) for each in made):
            raise ConfigError(f"{where}[{number}] has {of.text} a second time: leave one out")

        made.append(WeightedScore(of, pods, spec.weight, spec.missing))

    _check_number(made, where)
    return tuple(each for each in made if each.weight)


def conditions(specs: Iterable[ScoreConditionSpec], where: str) -> tuple[ScoreCondition, ...]:
    """Compile conditions. Raises ConfigError, with the cure, if one is wrong."""
    made: list[ScoreCondition] = []
    for number, spec in enumerate(specs):
        of = _compiled(spec, f"{where}[{number}]")
        try:
            required = properties.compiled(spec.name, spec.operator, spec.values)
        except ConfigError as error:
            raise ConfigError(f"{where}[{number}]: {error}") from error

        if spec.missing is not None and required.operator in properties.ABOUT_ABSENCE:
            raise ConfigError(
                f"{where}[{number}]: {spec.operator} says itself what is missing: leave out missing"
            )

        missing = spec.missing or MissingCondition.REJECT
        pods = _concerned(spec, f"{where}[{number}]")
        made.append(ScoreCondition(of, pods, required, _asked(spec), missing))

    _check_number(made, where)
    return tuple(made)


def _compiled(spec: _ReferenceSpec, where: str) -> ScoreReference:
    if not spec.name:
        raise ConfigError(f"{where}: name is empty")

    if (spec.source is ScoreSource.ADD_ON) is (not spec.resource):
        raise ConfigError(
            f"{where}: resource is the name of an AddOnPlacementScore: with source AddOn it has to "
            "be there, with others it is left out"
        )

    if spec.scope is not None and spec.source is not ScoreSource.FREE:
        raise ConfigError(f"{where}: scope is for source Free: leave it out")

    scope = spec.scope or FreeScope.CLUSTER
    return ScoreReference(spec.source, spec.name, spec.resource or "", scope)


def _concerned(spec: _ReferenceSpec, where: str) -> ConcernedPods:
    return ConcernedPods(spec.requesting, spec.pod_selector.compiled(f"{where}.podSelector"))


def _asked(spec: ScoreConditionSpec) -> str:
    sign = _SIGNS.get(spec.operator, spec.operator)
    return " ".join((sign, ", ".join(map(str, spec.values)))).strip()


def _check_number(made: Sequence[object], where: str) -> None:
    if len(made) > MOST_TERMS:
        raise ConfigError(f"{where} has over {MOST_TERMS} entries: name fewer")
