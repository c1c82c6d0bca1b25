"""Compiles conditions on numeric labels of nodes: amounts with units, where a `Selector` has text.

A label such as `example.com/memory-per-node=512Gi` is compared as the API compares quantities, so
that `2Gi` is `2048Mi`, and `Gt 400Gi` holds. A label that is absent, or no quantity, has no amount:
it matches NotIn and DoesNotExist, and nothing else (Exists wants no more than the label).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import quantities
from vnode.api.errors import ConfigError


class PropertyOperator(enum.Enum):
    """Comparisons of an amount."""

    GT = "Gt"
    GE = "Ge"
    LT = "Lt"
    LE = "Le"
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


_WITHOUT_VALUES: Final = (PropertyOperator.EXISTS, PropertyOperator.DOES_NOT_EXIST)
_LISTS: Final = (PropertyOperator.IN, PropertyOperator.NOT_IN)
ABOUT_ABSENCE: Final = (*_WITHOUT_VALUES, PropertyOperator.NOT_IN)
"""Those that say by themselves what an absent amount means."""


@dataclass(frozen=True, slots=True)
class PropertyRequirement:
    """A condition on one label."""

    name: str
    operator: PropertyOperator
    amounts: frozenset[int] = frozenset()
    """In nano-units; one for Gt, Ge, Lt and Le."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels satisfy it."""
        if self.operator in _WITHOUT_VALUES:
            return (self.name in labels) is (self.operator is PropertyOperator.EXISTS)

        return self.admits(amount_of(labels.get(self.name)))

    def admits(self, amount: int | None) -> bool:
        """Tell whether an amount in nano-units satisfies it; None is one that is absent."""
        if self.operator in _WITHOUT_VALUES:
            return (amount is not None) is (self.operator is PropertyOperator.EXISTS)

        if self.operator in _LISTS:
            listed = amount is not None and amount in self.amounts
            return listed is (self.operator is PropertyOperator.IN)

        return amount is not None and self._compares(amount)

    def _compares(self, amount: int) -> bool:
        (bound,) = self.amounts
        match self.operator:
            case PropertyOperator.GT:
                return amount > bound
            case PropertyOperator.GE:
                return amount >= bound
            case PropertyOperator.LT:
                return amount < bound
            case _:
                return amount <= bound


def compiled(name: str, operator: str, values: Iterable[str | float]) -> PropertyRequirement:
    """Compile one condition. Raises ConfigError, with the cure, if it is wrong."""
    try:
        known = PropertyOperator(operator)
    except ValueError as error:
        listed = ", ".join(each.value for each in PropertyOperator)
        raise ConfigError(
            f'property "{name}": operator "{operator}" is none of {listed}'
        ) from error

    try:
        amounts = [quantities.nano(value) for value in values]
    except ConfigError as error:
        raise ConfigError(f'property "{name}": {error}') from error

    if known in _WITHOUT_VALUES and amounts:
        raise ConfigError(f'property "{name}": {operator} takes no values')

    if known in _LISTS and not amounts:
        raise ConfigError(f'property "{name}": {operator} needs values, such as 512Gi')

    if known not in (*_WITHOUT_VALUES, *_LISTS) and len(amounts) != 1:
        raise ConfigError(f'property "{name}": {operator} needs one value, such as 512Gi')

    return PropertyRequirement(name, known, frozenset(amounts))


def amount_of(text: str | None) -> int | None:
    """Return a quantity in nano-units; None if there is none, or the text is no quantity."""
    if text is None:
        return None

    try:
        return quantities.nano(text)
    except ConfigError:
        return None
