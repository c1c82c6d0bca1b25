"""Tells which ClusterProfiles a set selects: by namespace, labels, manager, name, properties and
conditions, all of which must hold. Pure.

Properties are text, and numbers with units where they are compared as such: `2Gi` is `2048Mi`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from vnode.api import objects, properties
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.properties import PropertyOperator, PropertyRequirement
from vnode.api.selectors import Selector
from vnode.targets.profiles import describing

_LISTS: Final = (PropertyOperator.IN.value, PropertyOperator.NOT_IN.value)


@dataclass(frozen=True, slots=True)
class ListedValues:
    """A condition that a property is one of these values, or none of them.

    A value is the same as another of equal text or, if both are quantities, of equal amount.
    """

    name: str
    texts: frozenset[str]
    amounts: PropertyRequirement | None
    """In or NotIn, as this one; None if no value is a quantity."""
    wanted: bool

    def matches(self, values: Mapping[str, str]) -> bool:
        """Tell whether the properties satisfy it."""
        text = values.get(self.name)
        if text is not None and text in self.texts:
            return self.wanted

        return not self.wanted if self.amounts is None else self.amounts.matches(values)


PropertyCondition = PropertyRequirement | ListedValues


def compiled(name: str, operator: str, values: Sequence[str], where: str) -> PropertyCondition:
    """Compile a condition on a property. ConfigError, which begins with `where`, if it is wrong."""
    try:
        if operator not in _LISTS:
            return properties.compiled(name, operator, values)

        if not values:
            raise ConfigError(f'property "{name}": {operator} needs values')

        numbers = [value for value in values if _is_quantity(value)]
        amounts = properties.compiled(name, operator, numbers) if numbers else None
        return ListedValues(name, frozenset(values), amounts, operator == _LISTS[0])
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def _is_quantity(text: str) -> bool:
    try:
        properties.compiled("any", PropertyOperator.IN.value, [text])
    except ConfigError:
        return False

    return True


ALL: Final = Selector()


@dataclass(frozen=True, slots=True)
class ProfileSelection:
    """What a profile must be like; what is empty asks nothing. `namespace` "" means all."""

    namespace: str = ""
    labels: Selector = ALL
    managers: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    properties: tuple[PropertyCondition, ...] = ()
    conditions: frozenset[tuple[str, str]] = frozenset()
    """Types and statuses."""

    def in_scope(self, profile: Object) -> bool:
        """Tell whether a profile is in the namespace that the set looks at."""
        return self.namespace in ("", objects.namespace(profile))

    def matches(self, profile: Object) -> bool:
        """Tell whether a profile is selected; one that is being deleted is not."""
        if objects.is_terminating(profile) or not self.in_scope(profile):
            return False

        if self.names and objects.name(profile) not in self.names:
            return False

        if self.managers and describing.manager(profile) not in self.managers:
            return False

        if not self.labels.matches(objects.labels(profile)):
            return False

        if any(_status(profile, type_) != status for type_, status in self.conditions):
            return False

        values = describing.properties_of(profile) if self.properties else {}
        return all(condition.matches(values) for condition in self.properties)


def _status(profile: Object, type_: str) -> str:
    """Return the status of a condition; one that is absent is Unknown, as everywhere."""
    return str((objects.condition(profile, type_) or {}).get("status") or "Unknown")
