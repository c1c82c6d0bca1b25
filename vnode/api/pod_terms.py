"""Compiles pod affinity and anti-affinity terms: which pods a pod wants near it, or far away.

A term selects pods by labels and namespace, and names the node label by whose value nodes are the
same place. Semantics are Kubernetes' (core/v1 PodAffinityTerm). The labels of namespaces are not
known here: a `namespaceSelector` can be empty, which is all namespaces, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec

from vnode.api import constraint_size, objects, selectors
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.selectors import Selector

AFFINITY: Final = "podAffinity"
ANTI_AFFINITY: Final = "podAntiAffinity"

JUDGED: Final = 2 * constraint_size.POD_TERMS
"""Terms that select no pod, beside the others; the webhook leaves at most that many."""

_KEPT: Final = 256  # templates of pods whose terms are kept compiled
_LONGEST: Final = 16 * 1024  # bytes of such terms; what is longer stays no longer than its pod

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One term; equal terms select the same pods, whichever pod they are of."""

    topology_key: str
    selector: Selector | None
    """None matches no pod."""
    namespaces: frozenset[str] | None
    """None: all of them."""

    @property
    def cost(self) -> int:
        """How many comparisons it takes."""
        return 1 + (self.selector.cost if self.selector is not None else 0)

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a pod of that namespace with these labels is selected."""
        if self.namespaces is not None and namespace not in self.namespaces:
            return False

        return self.selector is not None and self.selector.matches(labels)


def required(pod: Object, which: str) -> tuple[PodTerm, ...]:
    """Return the terms that must hold; `which` is AFFINITY or ANTI_AFFINITY.

    Raises ConfigError if one is bad. Anti-affinity that selects no pod always holds, and is left
    out.
    """
    affinity = _affinity(pod, which)
    if not affinity:
        return ()

    namespace, text = objects.namespace(pod), msgspec.json.encode(affinity)
    found = (_known if len(text) <= _LONGEST else _required)(namespace, which, text)
    if isinstance(found, str):
        raise ConfigError(found)

    return found


def _required(namespace: str, which: str, text: bytes) -> tuple[PodTerm, ...] | str:
    """Compile terms; return an error's text as such."""
    spec = {"affinity": {which: msgspec.json.decode(text)}}
    pod = {"metadata": {"namespace": namespace}, "spec": spec}
    terms = _listed(pod, which, REQUIRED)
    try:
        return tuple(_compile(pod, term) for term in terms if which == AFFINITY or _selects(term))
    except ConfigError as error:
        return str(error)


_known: Final = lru_cache(maxsize=_KEPT)(_required)
"""`_required`, once for all pods that are made alike."""


def namespaces(pod: Object) -> frozenset[str] | None:
    """Return the namespaces whose pods its required terms may select, None for all."""
    found = set[str]()
    for which in (AFFINITY, ANTI_AFFINITY):
        for term in _affinity(pod, which).get(REQUIRED) or ():
            if term.get("namespaceSelector") is not None:
                return None

            found.update(term.get("namespaces") or (objects.namespace(pod),))

    return frozenset(found)


def preferred(pod: Object, which: str) -> tuple[tuple[PodTerm, int], ...]:
    """Return the preferred terms that select pods, with weights of 1..100. ConfigError if one is
    bad."""
    return tuple(
        (_compile(pod, wish.get("podAffinityTerm") or {}), int(wish.get("weight") or 0))
        for wish in _listed(pod, which, PREFERRED)
        if _selects(wish)
    )


def anti_affinity(pod: Object) -> Object:
    """Return the part of a pod of which `repelled` reads."""
    return _affinity(pod, ANTI_AFFINITY)


def repelled(pod: Object) -> tuple[PodTerm, ...]:
    """Return which pods a pod on a node keeps away; unreadable terms keep none away."""
    try:
        return required(pod, ANTI_AFFINITY)
    except ConfigError:
        return ()


def _affinity(pod: Object, which: str) -> Object:
    found: Object = (objects.spec(pod).get("affinity") or {}).get(which) or {}
    return found


def _listed(pod: Object, which: str, when: str) -> Iterable[Object]:
    affinity = _affinity(pod, which)
    terms = [term for listed in affinity.values() for term in listed or ()]
    most, field = constraint_size.POD_TERMS, f"spec.affinity.{which}"
    selecting = [term for term in terms if _selects(term)]
    constraint_size.check(selecting, selecting, field, most=most)
    constraint_size.check(terms, (), field, most=most + JUDGED)
    return affinity.get(when) or ()


def _selects(term: Object) -> bool:
    """Tell whether a term, perhaps a preferred one, may select pods at all."""
    return (term.get("podAffinityTerm") or term).get("labelSelector") is not None


def _compile(pod: Object, term: Object) -> PodTerm:
    selector = selectors.from_label_selector(term.get("labelSelector"))
    wanted = term.get("namespaceSelector")
    names = frozenset(term.get("namespaces") or ())
    if wanted is None:
        namespaces: frozenset[str] | None = names or frozenset((objects.namespace(pod),))
    elif any(wanted.values()):
        raise ConfigError(
            "a namespaceSelector of pod affinity cannot be evaluated over virtual nodes; "
            "list the namespaces instead, or leave it empty for all of them"
        )
    else:
        namespaces = None

    return PodTerm(str(term.get("topologyKey") or ""), selector, namespaces)
