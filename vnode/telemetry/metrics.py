"""What the agent counts about itself, in the names and units of Prometheus.

One registry of our own, so that a test can look at it and nothing else gets in. Label values come
from configuration and code only (clusters, verbs, codes, plugins), never from pods: the number of
series stays bounded.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

REGISTRY: Final = CollectorRegistry(auto_describe=True)
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

API_REQUESTS: Final = Counter(
    "vnode_api_requests_total",
    "Requests to API servers by cluster, verb and code (none: no answer).",
    ["cluster", "verb", "code"],
    registry=REGISTRY,
)
WATCH_ENDS: Final = Counter(
    "vnode_watch_ends_total",
    "Watches that ended, by why: clean, expired, error.",
    ["cluster", "resource", "why"],
    registry=REGISTRY,
)
RELISTS: Final = Counter(
    "vnode_informer_lists_total",
    "Complete lists that informers made.",
    ["cluster", "resource"],
    registry=REGISTRY,
)
STORE_OBJECTS: Final = Gauge(
    "vnode_informer_objects",
    "Objects that informers hold.",
    ["cluster", "resource"],
    registry=REGISTRY,
)
MALFORMED_OBJECTS: Final = Counter(
    "vnode_informer_malformed_objects_total",
    "Objects that an API server sent and that cannot be read.",
    ["cluster", "resource"],
    registry=REGISTRY,
)
RECONCILES: Final = Counter(
    "vnode_reconciles_total",
    "Reconciliations by controller and result: done, delayed, error.",
    ["controller", "result"],
    registry=REGISTRY,
)
RECONCILE_SECONDS: Final = Histogram(
    "vnode_reconcile_seconds",
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
    "vnode_scheduling_cycle_seconds",
    "Duration of the in-memory scheduling cycle.",
    buckets=(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05),
    registry=REGISTRY,
)
CANDIDATE_SECONDS: Final = Histogram(
    "vnode_candidate_seconds",
    "From the creation of a candidate to its outcome: reserved, rejected, failed.",
    ["target", "outcome"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
POD_BOUND_SECONDS: Final = Histogram(
    "vnode_pod_bound_seconds",
    "From first seeing a proxy pod to binding it.",
    buckets=_SECONDS,
    registry=REGISTRY,
)
PENDING_PODS: Final = Gauge(
    "vnode_pending_pods",
    "Proxy pods that are not bound, by where they wait.",
    ["queue"],
    registry=REGISTRY,
)
TARGET_HEALTHY: Final = Gauge(
    "vnode_target_healthy", "1 if the target answers, else 0.", ["target"], registry=REGISTRY
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
    "Admission reviews by result: ignored, mutated, rejected.",
    ["result"],
    registry=REGISTRY,
)
CERTIFICATE_EXPIRY: Final = Gauge(
    "vnode_certificate_expiry_timestamp_seconds",
    "When a certificate ends, in Unix time.",
    ["certificate"],
    registry=REGISTRY,
)
LEADER: Final = Gauge("vnode_leader", "1 if this process leads, else 0.", registry=REGISTRY)


def render() -> bytes:
    """All metrics in the text exposition format."""
    return generate_latest(REGISTRY)
