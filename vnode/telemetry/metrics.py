"""Declares the agent's metrics, in the names and units of Prometheus.

They have a registry of their own, so that tests can read it and nothing else gets in. Label values
come from configuration and code only (clusters, verbs, codes, plugins), never from pods, and the
series of a target go with it (`target_series`): so their number stays bounded. Of namespaces, the
few that wait for their turns have one. Counting something for each pod must cost only a
microsecond: keep the child that `labels` returns, if the labels are known beforehand. What only one
package counts in a way of its own is in a module there (`request_metrics`, `set_metrics`,
`score_metrics`, `token_metrics`).
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from vnode.telemetry.target_series import TargetCounter, TargetGauge, TargetHistogram

REGISTRY: Final = CollectorRegistry(auto_describe=True)
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

BUILD_INFO: Final = Gauge(
    "vnode_build_info", "Always 1; the label is the version.", ["version"], registry=REGISTRY
)
API_REQUESTS: Final = TargetCounter(
    "vnode_api_requests_total",
    "Requests to API servers by server, verb and code (none: no answer, other: no code of HTTP).",
    ["api_server", "verb", "code"],
    registry=REGISTRY,
)
API_REQUEST_SECONDS: Final = TargetHistogram(
    "vnode_api_request_duration_seconds",
    "Duration of requests to API servers that were answered; watches do not count.",
    ["api_server", "verb"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
PACE_WAIT_SECONDS: Final = TargetHistogram(
    "vnode_api_pace_wait_duration_seconds",
    "What requests waited until they were sent, of those that may have to: since the API server "
    "has said slow down (429), or as many are under way as may be.",
    ["api_server"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
PACE_LIMIT: Final = TargetGauge(
    "vnode_api_pace_limit",
    "Requests that may be under way at once, of API servers that have said slow down (429).",
    ["api_server"],
    registry=REGISTRY,
)
WATCH_ENDS: Final = TargetCounter(
    "vnode_watch_ends_total",
    "Watches that ended, by why: clean, expired, error.",
    ["api_server", "resource", "why"],
    registry=REGISTRY,
)
RELISTS: Final = TargetCounter(
    "vnode_informer_lists_total",
    "Complete lists that informers made.",
    ["api_server", "resource"],
    registry=REGISTRY,
)
STORE_OBJECTS: Final = TargetGauge(
    "vnode_informer_objects",
    "Objects that informers hold.",
    ["api_server", "resource"],
    registry=REGISTRY,
)
INFORMER_SILENCE: Final = TargetGauge(
    "vnode_informer_silence_seconds",
    "Since the API server last sent a list, an event or a bookmark; a minute is usual.",
    ["api_server", "resource"],
    registry=REGISTRY,
)
MALFORMED_OBJECTS: Final = TargetCounter(
    "vnode_informer_malformed_objects_total",
    "Objects that an API server sent and that cannot be read.",
    ["api_server", "resource"],
    registry=REGISTRY,
)
RECONCILES: Final = Counter(
    "vnode_reconciles_total",
    "Reconciliations by controller and result: done, delayed, error.",
    ["controller", "result"],
    registry=REGISTRY,
)
RECONCILE_SECONDS: Final = Histogram(
    "vnode_reconcile_duration_seconds",
    "Duration of reconciliations.",
    ["controller"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
QUEUE_DEPTH: Final = Gauge(
    "vnode_queue_depth", "Keys that wait for a worker.", ["controller"], registry=REGISTRY
)
SCHEDULING_ATTEMPTS: Final = Counter(
    "vnode_scheduling_attempts_total",
    "Attempts to place a pod by result: bound, unschedulable, error.",
    ["result"],
    registry=REGISTRY,
)
SCHEDULING_CYCLE_SECONDS: Final = Histogram(
    "vnode_scheduling_cycle_duration_seconds",
    "Duration of the in-memory scheduling cycle.",
    buckets=(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05),
    registry=REGISTRY,
)
EXTENSION_POINT_SECONDS: Final = Histogram(
    "vnode_scheduling_extension_point_duration_seconds",
    "Duration of all plugins of an extension point, for one pod.",
    ["extension_point"],
    buckets=(0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.01, 0.1, 1, 10, 60),
    registry=REGISTRY,
)
BINDING_SECONDS: Final = Histogram(
    "vnode_binding_duration_seconds",
    "From the choice of a target to the end of binding, by result: bound, failed.",
    ["result"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
CANDIDATE_SECONDS: Final = TargetHistogram(
    "vnode_candidate_duration_seconds",
    "From the creation of a candidate to its outcome: reserved, rejected, failed, silent.",
    ["target", "outcome"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
POD_BOUND_SECONDS: Final = Histogram(
    "vnode_pod_scheduling_duration_seconds",
    "From first seeing a proxy pod to binding it.",
    buckets=_SECONDS,
    registry=REGISTRY,
)
PENDING_PODS: Final = Gauge(
    "vnode_pending_pods",
    "Proxy pods that are not bound, by where they wait: active, backoff, unschedulable, held or "
    "in_flight.",
    ["queue"],
    registry=REGISTRY,
)
AGENT_STREAMS: Final = TargetGauge(
    "vnode_agent_streams",
    "Streams to a target, of which each spares two writes for a pod; one for each of its replicas.",
    ["target"],
    registry=REGISTRY,
)
TURN_WAITS: Final = Gauge(
    "vnode_turn_wait_seconds",
    "Seconds that work of a namespace has waited for its turn, summed and halved each minute, by "
    "the kind of work: of the ten namespaces that have waited most, and of all (others).",
    ["work", "of_namespace"],
    registry=REGISTRY,
)
MOVES: Final = Counter(
    "vnode_moves_total",
    "Moves of running pods that are over, by reason (drain, rebalance, reschedule, failback) and "
    "outcome: arrived, elsewhere, late, unreplaced.",
    ["reason", "outcome"],
    registry=REGISTRY,
)
MOVES_REFUSED: Final = Counter(
    "vnode_moves_refused_total",
    "Attempts to move a pod whose eviction was refused, mostly by a PodDisruptionBudget.",
    ["reason"],
    registry=REGISTRY,
)
PLACEHOLDERS: Final = TargetGauge(
    "vnode_placeholders",
    "Pending pods in a target that wait for room for pods that overflowed from it.",
    ["target"],
    registry=REGISTRY,
)
FEEDBACK_SECONDS: Final = Histogram(
    "vnode_feedback_lag_seconds",
    "From hearing of a chaperon's change to having written it to the proxy pod.",
    buckets=_SECONDS,
    registry=REGISTRY,
)
SPANS: Final = Counter(
    "vnode_trace_spans_total",
    "Spans of traces by what became of them: sent, unsent (the collector did not take them), "
    "dropped (too many waited).",
    ["outcome"],
    registry=REGISTRY,
)
WRITES_DELAYED: Final = Counter(
    "vnode_writes_delayed_total",
    "Writes that waited because a target reported too many changes, or users made too many of "
    "pods on their way to it (podchaperons), of Targets (connections), or of Sources (sources).",
    ["resource"],
    registry=REGISTRY,
)
TARGET_HEALTHY: Final = TargetGauge(
    "vnode_target_healthy", "1 if the target answers, else 0.", ["target"], registry=REGISTRY
)
TARGET_CREDENTIALS_EXPIRY: Final = TargetGauge(
    "vnode_target_credentials_expiry_timestamp_seconds",
    "When the token or client certificate of a target ends, in Unix time.",
    ["target"],
    registry=REGISTRY,
)
TARGET_CREDENTIALS_LAST: Final = TargetGauge(
    "vnode_target_credentials_last",
    "1 if a target's credentials last or will be renewed, 0 if somebody has to see to them.",
    ["target"],
    registry=REGISTRY,
)
EXEC_PLUGIN_SECONDS: Final = Histogram(
    "vnode_exec_plugin_run_duration_seconds",
    "Runs of exec plugins for ClusterProfiles, by provider and outcome: succeeded, failed.",
    ["provider", "outcome"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
ISSUED_TOKENS: Final = Counter(
    "vnode_issued_tokens_total",
    "What was done for AuthTokenRequests, by outcome: issued, renewed, revoked; failed attempts.",
    ["outcome"],
    registry=REGISTRY,
)
ISSUED_TOKEN_EXPIRY: Final = Gauge(
    "vnode_issued_token_expiry_timestamp_seconds",
    "When the first of all tokens of AuthTokenRequests ends, in Unix time; 0 if there is none.",
    registry=REGISTRY,
)
TARGET_SET_PROFILES: Final = Gauge(
    "vnode_target_set_profiles",
    "Profiles of a TargetSet or ClusterTargetSet by state: ready, unready (its Target is not), "
    "refused (it has no Target), gone (its Target is still there).",
    ["set", "state"],
    registry=REGISTRY,
)
TARGET_SET_HELD: Final = Gauge(
    "vnode_target_set_removal_held",
    "1 if a set removes nothing because most profiles went at once, else 0.",
    ["set"],
    registry=REGISTRY,
)
TARGET_SCORE: Final = TargetGauge(
    "vnode_target_score",
    "Scores of a target that the scheduler goes by and that count now, from -100 to 100.",
    ["target", "source", "score"],
    registry=REGISTRY,
)
TARGET_SCORE_MISSING: Final = TargetGauge(
    "vnode_target_score_missing",
    "1 if a target lacks a score that the scheduler goes by, or it has ended, else 0.",
    ["target", "source", "score"],
    registry=REGISTRY,
)
STREAMS_OPEN: Final = Gauge(
    "vnode_kubelet_streams_open", "Open streams by route.", ["route"], registry=REGISTRY
)
KUBELET_REQUESTS: Final = Counter(
    "vnode_kubelet_requests_total",
    "Requests to the kubelet API by route and code.",
    ["route", "code"],
    registry=REGISTRY,
)
ADMISSIONS: Final = Counter(
    "vnode_admissions_total",
    "Admission reviews by result: ignored, mutated (made a proxy), steered (no proxy), rejected.",
    ["result"],
    registry=REGISTRY,
)
ADMISSION_CPU: Final = Counter(
    "vnode_admission_cpu_seconds_total",
    "CPU time of the process that answers admission reviews.",
    registry=REGISTRY,
)
ADMISSION_MEMORY: Final = Gauge(
    "vnode_admission_resident_memory_bytes",
    "Memory of the process that answers admission reviews.",
    registry=REGISTRY,
)
CERTIFICATE_EXPIRY: Final = Gauge(
    "vnode_certificate_expiry_timestamp_seconds",
    "When a certificate ends, in Unix time.",
    ["certificate"],
    registry=REGISTRY,
)
# A counter that appears with its first event has no zero, and so no increase for Prometheus: alerts
# on events that do not happen need these series from the start.
for _result in ("bound", "unschedulable", "error"):
    SCHEDULING_ATTEMPTS.labels(_result)

for _result in ("ignored", "mutated", "steered", "rejected"):
    ADMISSIONS.labels(_result)

for _outcome in ("issued", "renewed", "revoked", "failed"):
    ISSUED_TOKENS.labels(_outcome)

for _resource in (
    "pods",
    "lost pods",
    "nodes",
    "services",
    "targets",
    "podchaperons",
    "connections",
    "sources",
):
    WRITES_DELAYED.labels(_resource)

LEADER: Final = Gauge("vnode_leader", "1 if this process leads, else 0.", registry=REGISTRY)


_CODES: Final = {status.value: str(status.value) for status in HTTPStatus}


def code_label(code: int) -> str:
    """Return the label value of a code: any server may make up others, a thousand of them."""
    return _CODES.get(code, "other")


class extension_point:
    """Measures a block as the work of all plugins of an extension point, for one pod."""

    __slots__ = ("_child", "_started")
    _children: Final[dict[str, Histogram]] = {}

    def __init__(self, name: str) -> None:
        child = self._children.get(name)
        if child is None:
            child = self._children[name] = EXTENSION_POINT_SECONDS.labels(name)

        self._child = child

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_exception: object) -> None:
        self._child.observe(time.perf_counter() - self._started)


class Lags:
    """Measures durations by key for one histogram. The first start of a key counts."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._started: dict[str, float] = {}

    def start(self, key: str) -> None:
        """Start the duration of a key, unless it has begun."""
        self._started.setdefault(key, time.monotonic())

    def stop(self, key: str) -> None:
        """Observe the duration of a key, if it has begun."""
        started = self._started.pop(key, None)
        if started is not None:
            self._histogram.observe(time.monotonic() - started)

    def forget(self, key: str) -> None:
        """Drop the start of a key."""
        self._started.pop(key, None)


def values_by(metric: Counter | Gauge, label: str) -> dict[str, float]:
    """Return the values of a metric by its one label."""
    return {
        sample.labels[label]: sample.value
        for family in metric.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def render() -> bytes:
    """Return all metrics in the text exposition format."""
    return generate_latest(REGISTRY)
