"""Compiles pod affinity and anti-affinity terms: which pods a pod wants near it, or far away.

A term selects pods by labels and namespace, and names the node label by whose value nodes are the
same place. Semantics are Kubernetes' (core/v1 PodAffinityTerm). The labels of namespaces are not
known here: a `namespaceSelector` can be empty, which is all namespaces, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import constraint_size, objects, selectors
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.selectors import Selector

AFFINITY: Final = "podAffinity"
ANTI_AFFINITY: Final = "podAntiAffinity"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class PodTerm:
    """One term; equal terms select the same pods, whichever pod they are of."""

    topology_key: str
    selector: Selector | None
    """None matches no pod."""
    namespaces: frozenset[str] | None
    """None: all of them."""

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a pod of that namespace with these labels is selected."""
        if self.namespaces is not None and namespace not in self.namespaces:
            return False

        return self.selector is not None and self.selector.matches(labels)


def required(pod: Object, which: str) -> tuple[PodTerm, ...]:
    """Return the terms that must hold; `which` is AFFINITY or ANTI_AFFINITY.

    Raises ConfigError if one is bad.
    """
    return tuple(_compile(pod, term) for term in _listed(pod, which, _REQUIRED))


def preferred(pod: Object, which: str) -> tuple[tuple[PodTerm, int], ...]:
    """Return the preferred terms, with weights of 1..100. ConfigError if one is bad."""
    return tuple(
        (_compile(pod, wish.get("podAffinityTerm") or {}), int(wish.get("weight") or 0))
        for wish in _listed(pod, which, _PREFERRED)
    )


def repelled(pod: Object) -> tuple[PodTerm, ...]:
    """Return which pods a pod on a node keeps away; unreadable terms keep none away."""
    try:
        return required(pod, ANTI_AFFINITY)
    except ConfigError:
        return ()


def _listed(pod: Object, which: str, when: str) -> Iterable[Object]:
    affinity: Object = (objects.spec(pod).get("affinity") or {}).get(which) or {}
    terms = [term for listed in affinity.values() for term in listed or ()]
    most = constraint_size.POD_TERMS
    constraint_size.check(terms, terms, f"spec.affinity.{which}", most=most)
    return affinity.get(when) or ()


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
