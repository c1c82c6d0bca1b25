"""Leaves what others use in a target out of what its virtual node offers, where that is asked for.

Kueue's topology-aware scheduling admits what fits into the allocatable of Nodes less the pods on
them. Of pods that other sources, and the target's own users, run there it knows nothing. Others
come and go all the time, so what is shown changes every ten seconds at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, objects, resources, source_usage
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.resources import Resources

INTERVAL: Final = 10.0  # seconds between changes of what is shown


@dataclass(frozen=True, slots=True)
class _Shown:
    amounts: Resources
    since: float  # monotonic


def share(summary: Object, uid: str, free: Resources | None) -> Resources | None:
    """Return what a source with that UID has or may have of a target; None if it does not say."""
    used = source_usage.decode(objects.annotations(summary).get(keys.USED_BY_SOURCES), uid)
    if used is None or free is None:
        return None

    try:
        offered = resources.parse(summary.get("allocatable"))
    except (ConfigError, AttributeError, TypeError):
        return None

    return {
        name: max(0, min(amount, free.get(name, 0) + used.get(name, 0)))
        for name, amount in offered.items()
    }


class OwnShares:
    """What is shown of each target, by its virtual node; moments are monotonic."""

    def __init__(self) -> None:
        self._shown: dict[str, _Shown] = {}

    def show(self, node: str, amounts: Resources, now: float) -> tuple[Resources, float]:
        """Return what to show, and the seconds until that may be other amounts."""
        shown = self._shown.get(node)
        if shown is not None and shown.amounts == amounts:
            return amounts, math.inf

        if shown is not None and (left := shown.since + INTERVAL - now) > 0:
            return shown.amounts, left

        self._shown[node] = _Shown(amounts, now)
        return amounts, math.inf

    def forget(self, node: str) -> None:
        """Drop what is known of a node that is gone."""
        self._shown.pop(node, None)
