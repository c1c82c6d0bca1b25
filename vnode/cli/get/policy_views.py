"""Defines what `vnode get` shows of policies and rebalances. No I/O."""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, objects
from vnode.cli.get import override_cells, rebalance_cells, views
from vnode.cli.get.views import View
from vnode.cli.tables import Column
from vnode.insight import policies
from vnode.kube.watching import ListOptions
from vnode.overrides import conditions
from vnode.overrides import policy as override_policy
from vnode.placement.policies import decoding

_priority = views.meta(lambda obj: str(objects.spec(obj).get("priority", 0)))

POLICIES: Final = View(
    "policies",
    lambda namespace: [
        ListOptions(kinds.PLACEMENT_POLICIES, namespace),
        ListOptions(kinds.CLUSTER_PLACEMENT_POLICIES),
    ],
    (
        views.NAMESPACE,
        views.NAME,
        Column("MODE", views.meta(lambda obj: str(objects.spec(obj).get("mode", "")))),
        views.READY,
        Column("ACCEPTED", views.condition("Accepted", "status")),
        Column("WORKLOADS", views.status_field("workloadCount")),
        Column("REPLICAS", views.status_field("replicas")),
        views.AGE,
        Column("PRIORITY", _priority, wide=True),
        Column("MESSAGE", views.meta(policies.message), wide=True),
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
        views.NAMESPACE,
        views.NAME,
        Column("RULES", views.meta(override_cells.rules)),
        views.READY,
        Column("ACCEPTED", views.condition(conditions.ACCEPTED, "status")),
        Column("APPLICABLE", views.condition(conditions.APPLICABLE, "status")),
        Column("PODS", lambda row: override_cells.selected_pods(row.object, row.pods)),
        Column("PRIORITY", _priority),
        views.AGE,
        Column("MESSAGE", views.meta(override_cells.failure), wide=True),
    ),
    counts_pods=True,
    kind_of=lambda obj: override_policy.kind_of(objects.key(obj)),
)

REBALANCES: Final = View(
    "rebalances",
    lambda namespace: [ListOptions(kinds.REBALANCES, namespace)],
    (
        views.NAMESPACE,
        views.NAME,
        Column(
            "STATUS",
            views.status_field("phase"),
            is_bad=lambda row: rebalance_cells.has_failed(row.object),
        ),
        Column("WORKLOADS", views.status_field("workloads")),
        Column("MOVED", views.status_field("moved")),
        Column("REMAINING", views.status_field("remaining")),
        views.AGE,
        Column("FOR", views.meta(rebalance_cells.workloads), wide=True),
        Column("MESSAGE", views.status_field("message"), wide=True),
    ),
    kind_of=lambda _obj: kinds.REBALANCES,
)

VIEWS: Final = (POLICIES, OVERRIDES, REBALANCES)
