"""Defines what `vnode get` shows of targets, virtual nodes, proxy pods and sources. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.cli import tables
from vnode.cli.get import views
from vnode.cli.get.views import Row, View
from vnode.cli.tables import Column
from vnode.insight import failing, status_text
from vnode.kube.watching import ListOptions
from vnode.targets import conditions, model


def _allocatable(resource: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        return str((objects.status(row.object).get("allocatable") or {}).get(resource, ""))

    return cell


def _where(row: Row) -> str:
    node = objects.node_name(row.object)
    return row.targets.get(node, node)


def _status(row: Row) -> str:
    return failing.status(row.object, row.now, is_away=_is_away(row))


def _fails(row: Row) -> bool:
    return failing.find(row.object, row.now) is not None or _status(row) == failing.UNREACHABLE


def _is_away(row: Row) -> bool:
    return objects.node_name(row.object) in row.away


def _pending_because(row: Row) -> str:
    condition = objects.condition(row.object, "PodScheduled") or {}
    return str(condition.get("message", "")) if condition.get("status") == "False" else ""


def _origin(target: Object) -> str:
    """Return what a Target is reached by, as kubectl writes objects."""
    spec, own = objects.spec(target), objects.namespace(target)
    for alternative, kind in (("clusterProfile", "clusterprofile"), ("kubeconfigSecret", "secret")):
        if reference := spec.get(alternative):
            namespace = own or reference.get("namespace", "")
            return f"{kind}/{namespace}/{reference.get('name', '')}"

    return "self" if spec.get("self") else ""


def _set(target: Object) -> str:
    return objects.labels(target).get(keys.TARGET_SET, "")


def _ip(pod: Object) -> str:
    return str(objects.status(pod).get("podIP") or "")


TARGETS: Final = View(
    "targets",
    lambda namespace: [ListOptions(kinds.TARGETS, namespace), ListOptions(kinds.CLUSTER_TARGETS)],
    (
        views.NAMESPACE,
        views.NAME,
        views.READY,
        views.REASON,
        Column("NODE", views.meta(lambda obj: model.key_of(obj).node_name)),
        Column("FROM", views.meta(_origin)),
        views.AGE,
        Column("SET", views.meta(_set), wide=True),
        Column("AGENT", views.condition(conditions.AGENT, "reason"), wide=True),
        Column("CREDENTIALS", views.condition(conditions.CREDENTIALS_LAST, "message"), wide=True),
        views.MESSAGE,
    ),
)
SOURCES: Final = View(
    "sources",
    lambda namespace: [ListOptions(kinds.SOURCES, namespace), ListOptions(kinds.CLUSTER_SOURCES)],
    (
        views.NAMESPACE,
        views.NAME,
        views.READY,
        views.REASON,
        Column("SUBJECT", views.meta(status_text.subject)),
        views.AGE,
        views.MESSAGE,
    ),
    kind_of=tables.source_kind,
)
NODES: Final = View(
    "nodes",
    lambda _namespace: [
        ListOptions(kinds.NODES, label_selector=f"{keys.PROVIDER_LABEL}={keys.PROVIDER}")
    ],
    (
        views.NAME,
        Column("STATUS", views.meta(status_text.node_status)),
        Column("TARGET", views.meta(status_text.node_target)),
        Column("CPU", _allocatable("cpu")),
        Column("MEMORY", _allocatable("memory")),
        Column("PODS", _allocatable("pods")),
        views.AGE,
        Column("REASON", views.condition("Ready", "reason"), wide=True),
        views.MESSAGE,
    ),
    namespaced=False,
    kind_of=lambda _obj: kinds.NODES,
)
PODS: Final = View(
    "pods",
    lambda namespace: [ListOptions(kinds.PODS, namespace)],
    (
        views.NAMESPACE,
        views.NAME,
        Column("READY", views.meta(status_text.ready)),
        Column("STATUS", _status, is_bad=_fails),
        Column("RESTARTS", views.meta(status_text.restarts)),
        Column("TARGET", _where),
        views.AGE,
        Column("IP", views.meta(_ip), wide=True),
        Column("WAITS FOR", _pending_because, wide=True),
    ),
    shows=status_text.is_proxy,
    kind_of=lambda _obj: kinds.PODS,
)

VIEWS: Final = (TARGETS, NODES, PODS, SOURCES)
