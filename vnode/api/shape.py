"""What pods of one shape ask of a real node: amounts, labels, and taints that it tolerates. Pure.

Which constraints count are those that its delegate has. Whatever cannot be judged by what a target
tells of its nodes is taken to hold: the target's own scheduler decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from vnode.api import constraint_size, resources, selectors, taints
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.requirements import Operator, Requirement
from vnode.api.resources import Resources
from vnode.api.selectors import NodeSelector, Selector

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_ANY: Final = Selector()

Condition: TypeAlias = tuple[str, Callable[[Mapping[str, str]], bool]]
"""A condition on the labels of a node: in words, and as a test."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The requests of a pod, and its constraints."""

    requests: Resources
    selector: Selector = _ANY
    affinity: NodeSelector | None = None
    tolerations: Sequence[Object] = ()
    wanted: Resources = field(init=False)
    """The requests that are not for nothing."""
    _key: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wanted = {name: amount for name, amount in self.requests.items() if amount > 0}
        object.__setattr__(self, "wanted", wanted)

    @property
    def key(self) -> str:
        """A text that differs for different shapes; it is short, and computed once."""
        if not self._key:
            wanted = sorted(self.wanted.items())
            text = str((wanted, self.selector, self.affinity, self.tolerations))
            key = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
            object.__setattr__(self, "_key", key)

        return self._key

    @property
    def order(self) -> list[str]:
        """The resources that it wants, extended ones first: by these nodes are compared."""
        return sorted(self.wanted, key=lambda name: (not resources.is_extended(name), name))

    def only(self, names: Collection[str]) -> Shape:
        """Return the shape as far as it is about these resources."""
        if all(name in names for name in self.wanted):
            return self

        kept = {name: amount for name, amount in self.wanted.items() if name in names}
        return replace(self, requests=kept)

    def matches(self, labels: Mapping[str, str], known: Collection[str]) -> bool:
        """Tell whether a node with these labels may be chosen, of which only `known` are told."""
        if not _hold(self.selector, labels, known):
            return False

        return self.affinity is None or any(
            _hold(term.labels, labels, known) for term in self.affinity
        )

    def tolerates(self, present: Sequence[Object]) -> bool:
        """Tell whether a node with these taints may be chosen."""
        return not present or self.untolerated(present) is None

    def untolerated(self, present: Sequence[Object]) -> Object | None:
        """Return the first of a node's taints that keeps such a pod away.

        API servers may give a pod a toleration for the extended resources that it requests
        (admission plugin ExtendedResourceToleration), so that counts as there.
        """
        others = [taint for taint in present if taint.get("key") not in self.wanted]
        return taints.untolerated(others, self.tolerations)

    def conditions(self, known: Collection[str]) -> Iterator[Condition]:
        """Yield what each node must have of the labels that are told, one by one."""
        terms = self.affinity or ()
        single = terms[0].labels.requirements if len(terms) == 1 else ()
        for requirement in sorted({*self.selector.requirements, *single}, key=_key):
            if requirement.key in known and requirement.operator in (Operator.IN, Operator.EXISTS):
                yield _text(requirement), requirement.matches

    def chosen(self, known: Collection[str]) -> str:
        """Return which nodes are meant, for messages: ` with LABEL=VALUE`, or ""."""
        texts = [text for text, _ in self.conditions(known)]
        return f" with {' and '.join(texts)}" if texts else ""


def of_spec(requests: Resources, spec: Object) -> Shape:
    """Return the shape of a delegate with that spec.

    ConfigError if its constraints cannot be read, or are too many to compare with each node.
    """
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required, selector = node.get(_REQUIRED), spec.get("nodeSelector") or {}
    tolerations = spec.get("tolerations") or ()
    terms = (required or {}).get("nodeSelectorTerms") or ()
    constraint_size.check(terms, [selector, required], "spec.affinity.nodeAffinity")
    constraint_size.check(tolerations, tolerations, "spec.tolerations")
    affinity = None if required is None else selectors.from_node_selector(required)
    return Shape(requests, selectors.from_labels(selector), affinity, tolerations)


def read(requests: Resources, spec: Object | None) -> Shape | None:
    """Return the shape of a delegate with that spec; None if there is none, or it cannot be read.

    Then the target's scheduler decides.
    """
    try:
        return None if spec is None else of_spec(requests, spec)
    except ConfigError:
        return None


def _hold(selector: Selector, labels: Mapping[str, str], known: Collection[str]) -> bool:
    for requirement in selector.requirements:
        if requirement.key in known and not requirement.matches(labels):
            return False

    return True


def _key(requirement: Requirement) -> tuple[str, list[str]]:
    return requirement.key, sorted(requirement.values)


def _text(requirement: Requirement) -> str:
    values = sorted(requirement.values)
    if not values:
        return requirement.key

    one = f"{requirement.key}={values[0]}"
    return one if len(values) == 1 else f"{requirement.key} in ({', '.join(values)})"
