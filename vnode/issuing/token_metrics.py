"""Counts what is done for AuthTokenRequests, and tells when the first of their tokens ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from vnode.telemetry import metrics


class TokenMetrics:
    """The metrics of one term."""

    def __init__(self) -> None:
        self._ends: dict[str, float] = {}  # by request, in Unix time

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the first end for the block; afterwards another replica knows it."""
        # Computed when it is scraped: a minimum at each reconciliation would take long with many.
        metrics.ISSUED_TOKEN_EXPIRY.set_function(lambda: min(self._ends.values(), default=0.0))
        try:
            yield
        finally:
            metrics.ISSUED_TOKEN_EXPIRY.set_function(lambda: 0.0)

    def note_end(self, key: str, ends: datetime | None) -> None:
        """Note when the token of a request ends; None if it has none, or none that counts."""
        if ends is None:
            self._ends.pop(key, None)
        else:
            self._ends[key] = ends.timestamp()

    def count(self, outcome: str) -> None:
        """Count what came of an attempt: issued, renewed, revoked, failed."""
        metrics.ISSUED_TOKENS.labels(outcome).inc()
