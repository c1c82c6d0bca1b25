"""Shows in metrics which score each target has of those that are used, and which are missing.

Names of scores come from the agent's configuration, so that there are no more series than entries
there for each target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from prometheus_client import Gauge

from vnode.api.score_terms import ScoreReference
from vnode.api.target_key import TargetKey
from vnode.telemetry import metrics

_Labels = tuple[str, str, str]  # target, source, score


class ScoreMetrics:
    """The metrics of one term."""

    def __init__(self) -> None:
        self._shown: frozenset[_Labels] = frozenset()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show scores for the block; afterwards another replica knows them."""
        try:
            yield
        finally:
            self.note({})

    def note(self, found: Mapping[tuple[TargetKey, ScoreReference], int | None]) -> None:
        """Note the scores of all targets; None is of one that is missing or has ended."""
        values = {_labels(*key): value for key, value in found.items()}
        for labels in self._shown - values.keys():
            _remove(metrics.TARGET_SCORE, labels)
            _remove(metrics.TARGET_SCORE_MISSING, labels)

        for labels, value in values.items():
            metrics.TARGET_SCORE_MISSING.labels(*labels).set(value is None)
            if value is None:
                _remove(metrics.TARGET_SCORE, labels)
            else:
                metrics.TARGET_SCORE.labels(*labels).set(value)

        self._shown = frozenset(values)


def _labels(target: TargetKey, reference: ScoreReference) -> _Labels:
    name = f"{reference.resource}/{reference.name}" if reference.resource else reference.name
    return str(target), reference.source.value, name


def _remove(metric: Gauge, labels: _Labels) -> None:
    with suppress(KeyError):  # it may be gone with its target
        metric.remove(*labels)
