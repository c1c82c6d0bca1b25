"""Leaves on a proxy those terms of pod affinity by which Kubernetes itself may refuse a pod: pure.

The affinity of an elected pod is its delegate's, and is moved into an annotation. A ResourceQuota
of scope CrossNamespacePodAffinity, and the admission plugin LimitPodHardAntiAffinityTopology, are
asked after that and look at the affinity. So the terms that they look at stay, without the label
selector. A term without one selects no pod: it moves no proxy, and keeps no pod away.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from vnode.api.constraint_size import POD_TERMS
from vnode.api.objects import Object
from vnode.api.pod_terms import AFFINITY, ANTI_AFFINITY, PREFERRED, REQUIRED
from vnode.api.virtual_constraints import HOSTNAME

_JUDGED: Final = ("topologyKey", "namespaces", "namespaceSelector")
_WEIGHT: Final = 1


def with_judged(affinity: Object | None, original: Object | None) -> Object | None:
    """Return the affinity of a proxy, with what is judged of its pod's original one."""
    found = dict(affinity or {})
    for which in (AFFINITY, ANTI_AFFINITY):
        own = (original or {}).get(which) or {}
        kept: Object = dict(found.get(which) or {})
        for when, terms in _judged(which, own, kept).items():
            kept[when] = [*(kept.get(when) or ()), *terms]

        if kept:
            found[which] = kept

    return found or None


def _judged(which: str, own: Object, kept: Object) -> dict[str, list[Object]]:
    """Return, each once, the terms to add to those that the proxy has anyway."""
    present = [term for _, term in islice(_terms(kept), POD_TERMS)]  # more are refused
    left: dict[str, list[Object]] = {}
    for when, term in _terms(own):
        is_required = which == ANTI_AFFINITY and when == REQUIRED
        if term in present or not (_crosses(term) or (is_required and _is_wide(term))):
            continue

        judged = {field: term[field] for field in _JUDGED if term.get(field) is not None}
        # Affinity that is required of a pod that selects none could never be met.
        entry = judged if is_required else {"weight": _WEIGHT, "podAffinityTerm": judged}
        listed = left.setdefault(REQUIRED if is_required else PREFERRED, [])
        if len(listed) < POD_TERMS and entry not in listed:
            listed.append(entry)

    return left


def _terms(affinity: Object) -> Iterator[tuple[str, Object]]:
    for term in affinity.get(REQUIRED) or ():
        yield REQUIRED, term

    for wish in affinity.get(PREFERRED) or ():
        yield PREFERRED, wish.get("podAffinityTerm") or {}


def _crosses(term: Object) -> bool:
    """Tell whether a quota of scope CrossNamespacePodAffinity counts the pod."""
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None


def _is_wide(term: Object) -> bool:
    """Tell whether LimitPodHardAntiAffinityTopology refuses the term."""
    return term.get("topologyKey") != HOSTNAME
