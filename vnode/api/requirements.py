"""Requirements on labels, and how many of them are compared in the time that a few take.

One by one, 330 expressions that hold take half a millisecond, and a selector of these may be
compared with each pod that anybody places. So requirements of one key are merged, and only keys
that the labels have are looked at: a pod pays for its own labels, whatever the selector's author
has written.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

INTEGER: Final = re.compile(r"[+-]?[0-9]{1,63}", re.ASCII)
"""What Gt and Lt compare; a label has 63 characters."""


class Operator(enum.Enum):
    """Comparisons of a label's value."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"

    __hash__ = object.__hash__  # hot; that of Enum is no built-in


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels satisfy it."""
        found = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return found is not None and found in self.values
            case Operator.NOT_IN:
                return found is None or found not in self.values
            case Operator.EXISTS:
                return found is not None
            case Operator.DOES_NOT_EXIST:
                return found is None
            case Operator.GT | Operator.LT:
                return found is not None and self._compares(found)

    def _compares(self, found: str) -> bool:
        (bound,) = self.values
        if not INTEGER.fullmatch(found):
            return False

        left, right = int(found), int(bound)
        return left > right if self.operator is Operator.GT else left < right


ABSENT: Final = (Operator.NOT_IN, Operator.DOES_NOT_EXIST)
"""Comparisons that hold for a label that is not there."""


class MergedRequirements:
    """Requirements that must all hold, by key; of each key there are few."""

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._needed: dict[str, list[Requirement]] = {}
        self._absent: dict[str, list[Requirement]] = {}
        for each in _merged(requirements):
            by_key = self._absent if each.operator in ABSENT else self._needed
            by_key.setdefault(each.key, []).append(each)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels satisfy all requirements."""
        if len(self._needed) > len(labels):
            return False

        for key, needed in self._needed.items():
            if key not in labels or not _hold(needed, labels):
                return False

        absent = self._absent
        for key in labels if len(labels) < len(absent) else absent:
            if key in absent and not _hold(absent[key], labels):
                return False

        return True


def _merged(requirements: Iterable[Requirement]) -> Iterable[Requirement]:
    """Return as few requirements as hold for the same labels, of one key one for each operator.

    Gt and Lt are not merged: selectors of pods have none.
    """
    wanted: dict[str, frozenset[str]] = {}
    unwanted: dict[str, frozenset[str]] = {}
    others = list[Requirement]()
    for each in requirements:
        if each.operator is Operator.IN:
            wanted[each.key] = each.values & wanted.get(each.key, each.values)
        elif each.operator is Operator.NOT_IN:
            unwanted[each.key] = each.values | unwanted.get(each.key, each.values)
        else:
            others.append(each)

    others += (Requirement(key, Operator.IN, values) for key, values in wanted.items())
    others += (Requirement(key, Operator.NOT_IN, values) for key, values in unwanted.items())
    return others


def _hold(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    for requirement in requirements:  # noqa: SIM110 - hot; half the time of all()
        if not requirement.matches(labels):
            return False

    return True
