"""Counts and measures the requests of one client: how they were answered, and what they waited."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

from vnode.telemetry import metrics


class RequestMetrics:
    """Counts the requests of one client; keeps children, since `labels` is the slowest part."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._counters: dict[tuple[str, str], Counter] = {}
        self._durations: dict[str, Histogram] = {}

    def answered(self, verb: str, code: int, seconds: float) -> None:
        """Count an answer, also of an error, that took `seconds`."""
        self._counter(verb, metrics.code_label(code)).inc()
        child = self._durations.get(verb)
        if child is None:
            child = self._durations[verb] = metrics.API_REQUEST_SECONDS.labels(self._cluster, verb)

        child.observe(seconds)

    def unanswered(self, verb: str) -> None:
        """Count a request without an answer."""
        self._counter(verb, "none").inc()

    def _counter(self, verb: str, code: str) -> Counter:
        child = self._counters.get((verb, code))
        if child is None:
            child = metrics.API_REQUESTS.labels(self._cluster, verb, code)
            self._counters[verb, code] = child

        return child


class PaceMetrics:
    """Measures how requests of one client wait for the pace of its server; no series until then."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    def observe(self, seconds: float) -> None:
        """Measure what one request has waited."""
        metrics.PACE_WAIT_SECONDS.labels(self._cluster).observe(seconds)

    def limit(self, requests: int) -> None:
        """Show how many may be under way now."""
        metrics.PACE_LIMIT.labels(self._cluster).set(requests)
