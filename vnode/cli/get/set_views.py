"""Defines what `vnode get` shows of TargetSets. No I/O."""

from __future__ import annotations

from typing import Final

from vnode.api import kinds
from vnode.cli.get import set_cells, views
from vnode.cli.get.views import View
from vnode.cli.tables import Column
from vnode.kube.watching import ListOptions
from vnode.targetsets import reporting, spec

TARGET_SETS: Final = View(
    "targetsets",
    lambda namespace: [
        ListOptions(kinds.TARGET_SETS, namespace),
        ListOptions(kinds.CLUSTER_TARGET_SETS),
    ],
    (
        views.NAMESPACE,
        views.NAME,
        Column("POLICY", views.meta(set_cells.policy)),
        Column("FOUND", views.status_field("found")),
        Column("READY", views.status_field("ready")),
        views.REASON,
        Column(
            "HELD",
            views.meta(set_cells.held),
            is_bad=lambda row: reporting.is_held(row.object),
        ),
        views.AGE,
        Column("TARGETS", views.meta(set_cells.targets), wide=True),
        Column("MESSAGE", views.meta(set_cells.message), wide=True),
    ),
    kind_of=spec.kind_of,
)

VIEWS: Final = (TARGET_SETS,)
