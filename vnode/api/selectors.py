"""Compiles label selectors and node selectors, to be matched often.

Semantics are the API's: requirements of one selector are ANDed, terms of a node selector are ORed,
NotIn and DoesNotExist also match where the key is absent, an empty label selector matches
everything, an absent one and an empty node selector term match nothing. A selector is a value:
equal ones hash alike, so they serve as keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.requirements import INTEGER, MergedRequirements, Operator, Requirement

_FIELD_NAME: Final = "metadata.name"
_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)\s*")
_SIGNS: Final = frozenset(("=", "==", "!=", "!", "(", ")", ",", "<", ">"))
_LONG: Final = 8  # requirements from which on they are merged before labels are compared


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; a selector without any matches everything."""

    requirements: frozenset[Requirement] = frozenset()
    _merged: MergedRequirements | None = field(default=None, init=False, repr=False, compare=False)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels satisfy all requirements."""
        if len(self.requirements) > _LONG:
            return self._merge().matches(labels)

        for requirement in self.requirements:  # noqa: SIM110 - hot; half the time of all()
            if not requirement.matches(labels):
                return False

        return True

    @property
    def cost(self) -> int:
        """How many comparisons it takes, of labels that are no more than usual."""
        return min(len(self.requirements), _LONG)

    def also(self, requirements: Iterable[Requirement]) -> Selector:
        """Return a selector with further requirements."""
        return Selector(self.requirements | frozenset(requirements))

    def prepare(self) -> None:
        """Do now what only the first comparison takes time for."""
        if len(self.requirements) > _LONG:
            self._merge()

    def _merge(self) -> MergedRequirements:
        if self._merged is None:
            object.__setattr__(self, "_merged", MergedRequirements(self.requirements))

        assert self._merged is not None
        return self._merged


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One term of a node selector; its `fields` are about the node's name."""

    labels: Selector
    fields: Selector

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Tell whether the node with these labels and that name is selected."""
        return self.labels.matches(labels) and self.fields.matches({_FIELD_NAME: name})


NodeSelector: TypeAlias = tuple[NodeSelectorTerm, ...]
"""Terms of which one must match; no term matches nothing."""


def from_labels(labels: Mapping[str, str]) -> Selector:
    """Return the selector for exactly these labels: `nodeSelector`, `matchLabels`, Services."""
    return Selector(
        frozenset(Requirement(key, Operator.IN, frozenset((v,))) for key, v in labels.items())
    )


def from_label_selector(selector: Object | None) -> Selector | None:
    """Compile a metav1.LabelSelector; None, which matches nothing, for None. ConfigError if it is
    wrong."""
    if selector is None:
        return None

    expressions = selector.get("matchExpressions") or ()
    return from_labels(selector.get("matchLabels") or {}).also(map(_requirement, expressions))


def to_label_selector(selector: Selector) -> Object:
    """Return the metav1.LabelSelector of a selector; ConfigError if it compares numbers."""
    labels: dict[str, str] = {}
    expressions = []
    for each in sorted(selector.requirements, key=lambda r: (r.key, r.operator.value)):
        if each.operator in (Operator.GT, Operator.LT):
            raise ConfigError(f"{each.operator.value} is not for labels")

        if each.operator is Operator.IN and len(each.values) == 1 and each.key not in labels:
            (labels[each.key],) = each.values
        else:
            values = {"values": sorted(each.values)} if each.values else {}
            expressions.append({"key": each.key, "operator": each.operator.value, **values})

    found = {"matchLabels": labels, "matchExpressions": expressions}
    return {field: value for field, value in found.items() if value}


def from_node_selector(selector: Object | None) -> NodeSelector:
    """Compile a core/v1 NodeSelector. ConfigError if it is wrong."""
    terms = (selector or {}).get("nodeSelectorTerms") or ()
    return tuple(compiled for term in terms if (compiled := from_term(term)) is not None)


def from_term(term: Object) -> NodeSelectorTerm | None:
    """Compile one NodeSelectorTerm; None if it is empty, which matches nothing."""
    expressions = term.get("matchExpressions") or ()
    fields = term.get("matchFields") or ()
    if not expressions and not fields:
        return None

    for expression in fields:
        if expression.get("key") != _FIELD_NAME:
            raise ConfigError(
                f'matchFields knows only {_FIELD_NAME}, not "{expression.get("key")}"'
            )

    return NodeSelectorTerm(
        Selector(frozenset(map(_requirement, expressions))),
        Selector(frozenset(map(_requirement, fields))),
    )


def matches_node(selector: NodeSelector, labels: Mapping[str, str], name: str) -> bool:
    """Tell whether one of the terms selects the node."""
    return any(term.matches(labels, name) for term in selector)


def parse(text: str) -> Selector:
    """Parse the string form: `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>3`. ConfigError if it is
    wrong."""
    if not text.strip():
        return Selector()

    tokens = _Tokens(text)
    requirements = [_parse_requirement(tokens)]
    while tokens.peek() == ",":
        tokens.next()
        requirements.append(_parse_requirement(tokens))

    if tokens.peek():
        raise tokens.error(f'"," instead of "{tokens.peek()}"')

    return Selector(frozenset(requirements))


class _Tokens:
    """A cursor over the words and signs of a selector."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match[1] for match in _TOKEN.finditer(text)]
        self._next = 0

    def peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self._next += 1
        return token

    def word(self) -> str:
        token = self.next()
        if not token or token in _SIGNS:
            raise self.error(f'a name instead of "{token}"')

        return token

    def optional_word(self) -> str:
        return "" if self.peek() in ("", ",", ")") else self.word()

    def expect(self, token: str) -> None:
        found = self.next()
        if found != token:
            raise self.error(f'"{token}" instead of "{found}"')

    def error(self, wanted: str) -> ConfigError:
        return ConfigError(f'label selector "{self._text}": write {wanted}')


def _parse_requirement(tokens: _Tokens) -> Requirement:
    if tokens.peek() == "!":
        tokens.next()
        return Requirement(tokens.word(), Operator.DOES_NOT_EXIST)

    key = tokens.word()
    match tokens.peek():
        case "" | ",":
            return Requirement(key, Operator.EXISTS)
        case "=" | "==":
            tokens.next()
            return _checked(key, Operator.IN, [tokens.optional_word()])
        case "!=":
            tokens.next()
            return _checked(key, Operator.NOT_IN, [tokens.optional_word()])
        case "<" | ">" as sign:
            tokens.next()
            return _checked(key, Operator.LT if sign == "<" else Operator.GT, [tokens.word()])
        case "in":
            tokens.next()
            return _checked(key, Operator.IN, _parse_values(tokens))
        case "notin":
            tokens.next()
            return _checked(key, Operator.NOT_IN, _parse_values(tokens))
        case other:
            raise tokens.error(f'an operator instead of "{other}"')


def _parse_values(tokens: _Tokens) -> list[str]:
    tokens.expect("(")
    values = [tokens.optional_word()]
    while tokens.peek() == ",":
        tokens.next()
        values.append(tokens.optional_word())

    tokens.expect(")")
    return values


def _requirement(expression: Object) -> Requirement:
    try:
        operator = Operator(expression.get("operator"))
    except ValueError as error:
        known = ", ".join(operator.value for operator in Operator)
        raise ConfigError(
            f'selector operator "{expression.get("operator")}" is not one of {known}'
        ) from error

    return _checked(str(expression.get("key", "")), operator, expression.get("values") or [])


def _checked(key: str, operator: Operator, values: Iterable[str]) -> Requirement:
    given = frozenset(values)
    if operator in (Operator.IN, Operator.NOT_IN):
        if not given:
            raise ConfigError(f'selector on "{key}": {operator.value} needs values')

    elif operator in (Operator.GT, Operator.LT):
        if len(given) != 1 or not INTEGER.fullmatch(next(iter(given))):
            raise ConfigError(f'selector on "{key}": {operator.value} needs one whole number')

    elif given:
        raise ConfigError(f'selector on "{key}": {operator.value} takes no values')

    return Requirement(key, operator, given)
