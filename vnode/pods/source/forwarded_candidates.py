"""Bounds the candidates of a pod that came from another cluster. Pure.

Each of its candidates is such a pod in the next cluster, and may have as many there. One pod that
fits nowhere would have their product: among ten clusters that are all targets of each other, ten
thousands. So such a pod asks few targets at once, and few of those that have rejected it, or do not
answer, keep their candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from vnode.api import route
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.pods.source.candidates import (
    Action,
    Candidate,
    CandidateSettings,
    CandidateState,
    Create,
    Wait,
)

_MOST: Final = 2  # candidates at once in the second cluster of a chain; one in those behind it
_ASKED: Final = (CandidateState.REJECTED, CandidateState.WAITING)


def settings_for(pod: Object, settings: CandidateSettings) -> CandidateSettings:
    """Return how the candidates of a pod are tried; `settings` itself for one that began here."""
    kept = _most(pod) - 1
    if not route.is_delegate(pod) or (settings.parallel == 1 and settings.keep_rejected <= kept):
        return settings

    return msgspec.structs.replace(
        settings, parallel=1, keep_rejected=min(settings.keep_rejected, kept)
    )


def bounded(
    action: Action,
    pod: Object,
    candidates: Mapping[str, Candidate],
    now: float,
    settings: CandidateSettings,
) -> Action:
    """Return the next step for a pod: another target has to wait while others may still answer."""
    if not (isinstance(action, Create) and route.is_delegate(pod)):
        return action

    ends = [found.since + settings.patience for found in _busy(candidates, now, settings)]
    return Wait(min(ends) - now) if len(ends) >= _most(pod) else action


def superfluous(
    pod: Object, candidates: Mapping[str, Candidate], now: float, settings: CandidateSettings
) -> list[str]:
    """Return the nodes that lose their candidate before the next target is asked: the oldest of
    those that have rejected the pod, or have not answered for as long as they may."""
    if not route.is_delegate(pod):
        return []

    busy = _busy(candidates, now, settings)
    idle = [n for n, found in candidates.items() if found.state in _ASKED and found not in busy]
    oldest_first = sorted(idle, key=lambda node: (candidates[node].since, node))
    return oldest_first[: max(0, len(idle) + len(busy) - (_most(pod) - 1))]


def _busy(
    candidates: Mapping[str, Candidate], now: float, settings: CandidateSettings
) -> list[Candidate]:
    """Return those of which an answer may still come."""
    return [
        found
        for found in candidates.values()
        if found.state is CandidateState.WAITING and found.since + settings.patience > now
    ]


def _most(pod: Object) -> int:
    try:
        return max(1, _MOST + 1 - len(route.path_of(pod)))
    except ConfigError:  # it is not sent on at all
        return 1
