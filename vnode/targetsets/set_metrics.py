"""Shows in metrics how many profiles of each set are in use, and which sets hold removals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from vnode.telemetry import metrics


class SetMetrics:
    """The metrics of one term; sets by name, or `namespace/name`."""

    def __init__(self) -> None:
        self._shown: dict[str, frozenset[str]] = {}  # by set: the states that it has series for

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the sets for the block; afterwards another replica knows them."""
        try:
            yield
        finally:
            for key in list(self._shown):
                self.forget(key)

    def note(self, key: str, profiles: Mapping[str, int], *, held: bool) -> None:
        """Note how many profiles of a set are in each state, and whether it holds removals."""
        self._shown[key] = frozenset(profiles)
        for state, count in profiles.items():
            metrics.TARGET_SET_PROFILES.labels(key, state).set(count)

        metrics.TARGET_SET_HELD.labels(key).set(held)

    def forget(self, key: str) -> None:
        """Remove the series of a set that is gone, or cannot be kept as it is."""
        if key in self._shown:
            for state in self._shown.pop(key):
                metrics.TARGET_SET_PROFILES.remove(key, state)

            metrics.TARGET_SET_HELD.remove(key)
