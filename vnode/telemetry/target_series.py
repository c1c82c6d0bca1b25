"""Metrics whose first label is a target, or an API server: their series go with the target.

Targets come and go without an end, by the hand of whoever administers a namespace. So what goes
with one is found by an index, not among the series of all others. And what is counted of one that
is gone already, such as a request that was under way, makes no series: nobody would ever remove it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

LOCAL: Final = "local"
"""The agent's own API server. A ClusterTarget of that name shares its series, and removes none."""
MOST_GONE: Final = 1000
"""Targets that are remembered as gone, the last ones: what was under way ends within a minute."""

# By target that is not gone: its series, and perhaps some that are removed since.
_series: Final[dict[str, set[tuple[_OfTargets, tuple[str, ...]]]]] = {}
_gone: Final[dict[str, None]] = {}  # the oldest first, at most MOST_GONE


class _OfTargets(MetricWrapperBase):
    """Knows which of its series are those of a target."""

    def labels(self, *values: object, **named: object) -> Any:
        """Return the series of these values; if its target is gone, one that is not shown."""
        key = tuple(map(str, values)) or tuple(str(named[name]) for name in self._labelnames)
        child = super().labels(*key)
        if key[0] in _gone:
            with suppress(KeyError):
                self.remove(*key)
        else:
            _series.setdefault(key[0], set()).add((self, key))

        return child


class TargetCounter(_OfTargets, Counter):
    """A counter with a series, or some, for each target."""


class TargetGauge(_OfTargets, Gauge):
    """A gauge with a series, or some, for each target."""

    def show(self, values: Mapping[tuple[str, ...], float]) -> Iterator[None]:
        """Set the series of these values of labels, and remove all others, step by step: there may
        be thousands. One that stays is kept, since making it anew takes several times as long."""
        with self._lock:
            stale = [key for key in self._metrics if key not in values]

        for key in stale:
            with suppress(KeyError):
                self.remove(*key)

            yield

        for key, value in values.items():
            self.labels(*key).set(value)
            yield


class TargetHistogram(_OfTargets, Histogram):
    """A histogram with a series, or some, for each target."""


def expect(target: str) -> None:
    """Show series of a target, which exists."""
    _gone.pop(target, None)


def forget(target: str) -> None:
    """Remove the series of a target that is gone, and show no more of it until `expect`."""
    if target == LOCAL:
        return

    _gone.pop(target, None)
    _gone[target] = None
    if len(_gone) > MOST_GONE:
        del _gone[next(iter(_gone))]

    for metric, key in _series.pop(target, ()):
        with suppress(KeyError):
            metric.remove(*key)
