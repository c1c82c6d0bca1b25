"""Matches taints of nodes and tolerations of pods as kube-scheduler does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from vnode.api.objects import Object

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
HARD: Final = (NO_SCHEDULE, NO_EXECUTE)
"""The effects that keep a pod away."""

UNSCHEDULABLE: Final[Object] = {"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE}
"""The taint of a cordoned node; DaemonSet pods tolerate it."""

_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})", re.ASCII)


def tolerates(toleration: Object, taint: Object) -> bool:
    """Tell whether the toleration covers the taint.

    An absent effect or key covers all of them; the operator is Equal unless it says Exists, or Lt
    or Gt, by which the taint's value is below or above the toleration's.
    """
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False

    if key and key != taint.get("key"):
        return False

    mine, other = toleration.get("value") or "", taint.get("value") or ""
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(mine == other)
        case "Lt" | "Gt" as operator if _DECIMAL.fullmatch(mine) and _DECIMAL.fullmatch(other):
            return int(other) < int(mine) if operator == "Lt" else int(other) > int(mine)
        case _:
            return False


def untolerated(
    taints: Iterable[Object], tolerations: Sequence[Object], effects: Sequence[str] = HARD
) -> Object | None:
    """Return the first taint with one of the effects that no toleration covers, or None."""
    for taint in taints:
        if taint.get("effect") in effects and not any(tolerates(t, taint) for t in tolerations):
            return taint

    return None


def describe(taint: Object) -> str:
    """Format as `{key: value}`, as kube-scheduler does."""
    return f"{{{taint.get('key', '')}: {taint.get('value', '')}}}"
