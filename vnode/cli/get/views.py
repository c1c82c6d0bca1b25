"""Defines for each resource of `vnode get` which objects and columns it shows. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import tables
from vnode.cli.get import override_cells, rebalance_cells, set_cells, token_cells
from vnode.cli.tables import Column
from vnode.insight import failing, policies, status_text
from vnode.kube.watching import ListOptions
from vnode.overrides import conditions as override_conditions
from vnode.overrides import policy as override_policy
from vnode.placement.policies import decoding
from vnode.targets import conditions, model
from vnode.targetsets import reporting as set_reporting
from vnode.targetsets import spec as set_spec


@dataclass(frozen=True, slots=True)
class Row:
    """An object, with further inputs of its cells."""

    kind: Kind
    object: Object
    now: datetime
    targets: Mapping[str, str] = field(default_factory=dict)  # virtual node -> its target
    away: Collection[str] = ()  # virtual nodes whose targets do not answer
    pods: Objects | None = None  # the proxy pods, for resources that count them; None: not read


@dataclass(frozen=True, slots=True)
class View:
    """One resource of `vnode get`; `selections` returns the lists to read for a namespace."""

    name: str
    selections: Callable[[str | None], list[ListOptions]]
    columns: tuple[Column, ...]
    namespaced: bool = True
    shows: Callable[[Object], bool] = lambda _obj: True
    kind_of: Callable[[Object], Kind] = tables.target_kind


def _meta(read: Callable[[Object], str]) -> Callable[[Row], str]:
    return lambda row: read(row.object)


def _condition(type_: str, part: str) -> Callable[[Row], str]:
    return lambda row: str((objects.condition(row.object, type_) or {}).get(part, ""))


def _age(row: Row) -> str:
    return status_text.age(objects.created(row.object), row.now)


def _allocatable(resource: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        return str((objects.status(row.object).get("allocatable") or {}).get(resource, ""))

    return cell


def _status_text(field: str) -> Callable[[Row], str]:
    return lambda row: str(objects.status(row.object).get(field, ""))


def _timed(read: Callable[[Object, datetime], str]) -> Callable[[Row], str]:
    return lambda row: read(row.object, row.now)


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


_NAME: Final = Column("NAME", _meta(objects.name), names_row=True)
_NAMESPACE: Final = Column("NAMESPACE", _meta(objects.namespace), names_row=True)
_READY: Final = Column("READY", _condition(conditions.READY, "status"))
_REASON: Final = Column("REASON", _condition(conditions.READY, "reason"))
_MESSAGE: Final = Column("MESSAGE", _condition(conditions.READY, "message"), wide=True)
_AGE: Final = Column("AGE", _age)
_priority = _meta(lambda obj: str(objects.spec(obj).get("priority", 0)))

TARGETS: Final = View(
    "targets",
    lambda namespace: [ListOptions(kinds.TARGETS, namespace), ListOptions(kinds.CLUSTER_TARGETS)],
    (
        _NAMESPACE,
        _NAME,
        _READY,
        _REASON,
        Column("NODE", _meta(lambda obj: model.key_of(obj).node_name)),
        Column("FROM", _meta(_origin)),
        _AGE,
        Column("SET", _meta(lambda obj: objects.labels(obj).get(keys.TARGET_SET, "")), wide=True),
        Column("AGENT", _condition(conditions.AGENT, "reason"), wide=True),
        Column("CREDENTIALS", _condition(conditions.CREDENTIALS_LAST, "message"), wide=True),
        _MESSAGE,
    ),
)
TARGET_SETS: Final = View(
    "targetsets",
    lambda namespace: [
        ListOptions(kinds.TARGET_SETS, namespace),
        ListOptions(kinds.CLUSTER_TARGET_SETS),
    ],
    (
        _NAMESPACE,
        _NAME,
        Column("POLICY", _meta(set_cells.policy)),
        Column("FOUND", _status_text("found")),
        Column("READY", _status_text("ready")),
        _REASON,
        Column(
            "HELD",
            _meta(set_cells.held),
            is_bad=lambda row: set_reporting.is_held(row.object),
        ),
        _AGE,
        Column("TARGETS", _meta(set_cells.targets), wide=True),
        Column("MESSAGE", _meta(set_cells.message), wide=True),
    ),
    kind_of=set_spec.kind_of,
)
SOURCES: Final = View(
    "sources",
    lambda namespace: [ListOptions(kinds.SOURCES, namespace), ListOptions(kinds.CLUSTER_SOURCES)],
    (
        _NAMESPACE,
        _NAME,
        _READY,
        _REASON,
        Column("SUBJECT", _meta(status_text.subject)),
        _AGE,
        _MESSAGE,
    ),
    kind_of=tables.source_kind,
)
NODES: Final = View(
    "nodes",
    lambda _namespace: [
        ListOptions(kinds.NODES, label_selector=f"{keys.PROVIDER_LABEL}={keys.PROVIDER}")
    ],
    (
        _NAME,
        Column("STATUS", _meta(status_text.node_status)),
        Column("TARGET", _meta(status_text.node_target)),
        Column("CPU", _allocatable("cpu")),
        Column("MEMORY", _allocatable("memory")),
        Column("PODS", _allocatable("pods")),
        _AGE,
        Column("REASON", _condition("Ready", "reason"), wide=True),
        _MESSAGE,
    ),
    namespaced=False,
    kind_of=lambda _obj: kinds.NODES,
)
PODS: Final = View(
    "pods",
    lambda namespace: [ListOptions(kinds.PODS, namespace)],
    (
        _NAMESPACE,
        _NAME,
        Column("READY", _meta(status_text.ready)),
        Column("STATUS", _status, is_bad=_fails),
        Column("RESTARTS", _meta(status_text.restarts)),
        Column("TARGET", _where),
        _AGE,
        Column("IP", _meta(lambda obj: str(objects.status(obj).get("podIP") or "")), wide=True),
        Column("WAITS FOR", _pending_because, wide=True),
    ),
    shows=status_text.is_proxy,
    kind_of=lambda _obj: kinds.PODS,
)

POLICIES: Final = View(
    "policies",
    lambda namespace: [
        ListOptions(kinds.PLACEMENT_POLICIES, namespace),
        ListOptions(kinds.CLUSTER_PLACEMENT_POLICIES),
    ],
    (
        _NAMESPACE,
        _NAME,
        Column("MODE", _meta(lambda obj: str(objects.spec(obj).get("mode", "")))),
        _READY,
        Column("ACCEPTED", _condition("Accepted", "status")),
        Column("WORKLOADS", _status_text("workloadCount")),
        Column("REPLICAS", _status_text("replicas")),
        _AGE,
        Column("PRIORITY", _priority, wide=True),
        Column("MESSAGE", _meta(policies.message), wide=True),
    ),
    kind_of=decoding.kind_of,
)

OVERRIDES: Final = View(
    "overrides",
    lambda namespace: [
        ListOptions(kinds.OVERRIDE_POLICIES, namespace),
        ListOptions(kinds.CLUSTER_OVERRIDE_POLICIES),
    ],
    (
        _NAMESPACE,
        _NAME,
        Column("RULES", _meta(override_cells.rules)),
        _READY,
        Column("ACCEPTED", _condition(override_conditions.ACCEPTED, "status")),
        Column("APPLICABLE", _condition(override_conditions.APPLICABLE, "status")),
        Column("PODS", lambda row: override_cells.selected_pods(row.object, row.pods)),
        Column("PRIORITY", _priority),
        _AGE,
        Column("MESSAGE", _meta(override_cells.failure), wide=True),
    ),
    kind_of=lambda obj: override_policy.kind_of(objects.key(obj)),
)

REBALANCES: Final = View(
    "rebalances",
    lambda namespace: [ListOptions(kinds.REBALANCES, namespace)],
    (
        _NAMESPACE,
        _NAME,
        Column(
            "STATUS",
            _status_text("phase"),
            is_bad=lambda row: rebalance_cells.has_failed(row.object),
        ),
        Column("WORKLOADS", _status_text("workloads")),
        Column("MOVED", _status_text("moved")),
        Column("REMAINING", _status_text("remaining")),
        _AGE,
        Column("FOR", _meta(rebalance_cells.workloads), wide=True),
        Column("MESSAGE", _status_text("message"), wide=True),
    ),
    kind_of=lambda _obj: kinds.REBALANCES,
)

TOKENS: Final = View(
    "tokens",
    lambda namespace: [ListOptions(kinds.AUTH_TOKEN_REQUESTS, namespace)],
    (
        _NAMESPACE,
        _NAME,
        Column("TARGET", _meta(token_cells.target)),
        Column("ACCOUNT", _meta(token_cells.account)),
        Column("READY", _timed(token_cells.ready)),
        Column("REASON", _timed(token_cells.reason)),
        Column("EXPIRES", _timed(token_cells.expires)),
        Column("RENEWAL", _timed(token_cells.renewal)),
        _AGE,
        Column("MESSAGE", _timed(token_cells.message), wide=True),
    ),
    kind_of=lambda _obj: kinds.AUTH_TOKEN_REQUESTS,
)

_VIEWS: Final = (
    TARGETS,
    TARGET_SETS,
    NODES,
    PODS,
    SOURCES,
    POLICIES,
    OVERRIDES,
    REBALANCES,
    TOKENS,
)
VIEWS: Final = {view.name: view for view in _VIEWS}
ALIASES: Final = {
    "target": "targets",
    "tg": "targets",
    "targetset": "targetsets",
    "clustertargetset": "targetsets",
    "clustertargetsets": "targetsets",
    "ts": "targetsets",
    "cts": "targetsets",
    "node": "nodes",
    "no": "nodes",
    "pod": "pods",
    "po": "pods",
    "source": "sources",
    "policy": "policies",
    "placementpolicies": "policies",
    "plpol": "policies",
    "override": "overrides",
    "overridepolicies": "overrides",
    "ovpol": "overrides",
    "rebalance": "rebalances",
    "rebal": "rebalances",
    "token": "tokens",
    "authtokenrequests": "tokens",
    "atr": "tokens",
}


def columns(view: View, *, everywhere: bool) -> tuple[Column, ...]:
    """Return the columns of a view, without the namespace where it is the same for all rows."""
    several = everywhere or view in (TARGETS, TARGET_SETS, SOURCES, POLICIES, OVERRIDES)
    return tuple(column for column in view.columns if several or column is not _NAMESPACE)
