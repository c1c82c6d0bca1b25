"""Takes out of label selectors what an API server has merged into them at a pod's creation. Pure.

`matchLabelKeys` and `mismatchLabelKeys` of pod affinity, and `matchLabelKeys` of topology spread
constraints, name labels of the pod itself. The API server appends an expression for each of them to
the `labelSelector` of the same term, with the value that the label has then. A term that was merged
before is refused ("exists in both matchLabelKeys and labelSelector"), so one that is to be created
once more has to go without these expressions; they are merged anew, with the labels that the new
pod has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vnode.api.objects import Object, Objects

_TERMS: Final = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_PODS: Final = ("podAffinity", "podAntiAffinity")


def without(spec: Object, labels: Mapping[str, str]) -> Object:
    """Return a pod's spec as it was before the merge; the same object if there is none."""
    affinity: Object = spec.get("affinity") or {}
    changed: Object = {}
    pods = {which: _affinity(affinity[which], labels) for which in _PODS if affinity.get(which)}
    if any(pods[which] != affinity[which] for which in pods):
        changed["affinity"] = {**affinity, **pods}

    spread = spec.get("topologySpreadConstraints") or []
    if (unmerged := [_term(each, labels) for each in spread]) != spread:
        changed["topologySpreadConstraints"] = unmerged

    return {**spec, **changed} if changed else spec


def _affinity(affinity: Object, labels: Mapping[str, str]) -> Object:
    kept = dict(affinity)
    for which in _TERMS:
        if terms := affinity.get(which):
            kept[which] = [_weighted(term, labels) for term in terms]

    return kept


def _weighted(term: Object, labels: Mapping[str, str]) -> Object:
    if inner := term.get("podAffinityTerm"):
        return {**term, "podAffinityTerm": _term(inner, labels)}

    return _term(term, labels)


def _term(term: Object, labels: Mapping[str, str]) -> Object:
    selector: Object = term.get("labelSelector") or {}
    before: Objects = selector.get("matchExpressions") or []
    left = list(before)
    for key in term.get("mismatchLabelKeys") or ():
        # A user's own expression may exclude values of the key, too.
        _drop_last(left, key, "NotIn", [labels.get(key)])

    for key in term.get("matchLabelKeys") or ():
        # Of a label that the pod has, no user's expression may name the key; it may have had
        # another value when the pod was created.
        if key in labels:
            _drop_last(left, key, "In", None)

    if left == before:
        return term

    rest = {field: value for field, value in selector.items() if field != "matchExpressions"}
    return {**term, "labelSelector": {**rest, "matchExpressions": left} if left else rest}


def _drop_last(expressions: Objects, key: str, operator: str, values: list[Any] | None) -> None:
    """Remove the last expression of that key, operator and values: of any one value for None."""
    for place in reversed(range(len(expressions))):
        found = expressions[place]
        is_of_key = (found.get("key"), found.get("operator")) == (key, operator)
        given = found.get("values") or []
        if is_of_key and (given == values if values is not None else len(given) == 1):
            del expressions[place]
            return
