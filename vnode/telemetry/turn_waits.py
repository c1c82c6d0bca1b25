"""Says who is being slowed, and where: how long work of each namespace has waited for its turn.

Wherever namespaces take turns, whoever hands out a turn notes how long it was waited for. What is
noted fades: after a minute half of it counts. So a namespace that has asked for more than its share
shows for as long as it does, and a few minutes more. Of each place only the namespaces that have
waited most are shown, and all others as one, so that the number of series is bounded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from vnode.telemetry import metrics

MOST: Final = 10
"""Namespaces that are shown for each place."""
OTHERS: Final = "(others)"
"""In place of a namespace, which cannot have that name: all that are not shown."""
CLUSTER_WIDE: Final = "(cluster-wide)"
"""Likewise: of objects without a namespace."""
HALF: Final = 60.0
"""Seconds after which half of a wait counts."""
_NOTICED: Final = 0.005  # seconds; shorter waits are those of an idle machine
_FEW: Final = 128  # namespaces that are kept without looking whether they have to be
_NOTHING: Final = 0.01  # seconds that are not worth being kept

_Moment = Callable[[], float]


class TurnWaits:
    """How long the work of namespaces has waited in one place."""

    def __init__(self, now: _Moment = time.monotonic) -> None:
        self._now = now
        self._waits: dict[str, tuple[float, float]] = {}  # seconds, and the moment as of which

    def note(self, namespace: str, seconds: float) -> None:
        """Note that some work of a namespace has waited so long until its turn, or is to."""
        if seconds < _NOTICED:
            return

        now = self._now()
        self._waits[namespace] = self._faded(namespace, now) + seconds, now
        if len(self._waits) > _FEW:
            self._drop_least(now)

    def shown(self) -> Mapping[str, float]:
        """Return the seconds of the namespaces that have waited most, and of all others."""
        now = self._now()
        faded = {namespace: self._faded(namespace, now) for namespace in self._waits}
        ordered = sorted(faded.items(), key=lambda entry: (-entry[1], entry[0]))
        found = {namespace: seconds for namespace, seconds in ordered[:MOST] if seconds > _NOTHING}
        rest = sum(seconds for _namespace, seconds in ordered[MOST:])
        return found | ({OTHERS: rest} if rest > _NOTHING else {})

    def _faded(self, namespace: str, now: float) -> float:
        seconds, since = self._waits.get(namespace, (0.0, now))
        return seconds * math.exp2(-max(0.0, now - since) / HALF)

    def _drop_least(self, now: float) -> None:
        """Forget half of the namespaces, those that have waited least."""
        ordered = sorted(self._waits, key=lambda namespace: -self._faded(namespace, now))
        self._waits = {namespace: self._waits[namespace] for namespace in ordered[: _FEW // 2]}


_places: Final[dict[str, TurnWaits]] = {}
_elsewhere: Final[dict[str, Mapping[str, float]]] = {}


def of(work: str) -> TurnWaits:
    """Return the waits of one place, by the name of the work that is done there."""
    return _places.setdefault(work, TurnWaits())


def take(work: str, shown: Mapping[str, float]) -> None:
    """Take what is `shown` of a place in another process, until that says something else."""
    _elsewhere[work] = shown


def measure() -> Iterator[None]:
    """Update the gauge, step by step."""
    metrics.TURN_WAITS.clear()
    here = {work: waits.shown() for work, waits in _places.items()}
    for work, shown in (here | _elsewhere).items():
        for namespace, seconds in shown.items():
            metrics.TURN_WAITS.labels(work, namespace or CLUSTER_WIDE).set(seconds)

        yield
