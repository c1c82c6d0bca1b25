"""Renders a plan as tables for people, or as an object for programs. Pure but for the colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vnode.api import visible
from vnode.api.objects import Object
from vnode.cli import tables, terminal, wrapping
from vnode.cli.plan.planning import PolicyPlan
from vnode.cli.tables import Column
from vnode.placement.status.accounts import ClusterAccount, WorkloadAccount
from vnode.planning.policy import Mode

_NO_PLAN: Final = {
    Mode.ANY: "there is no plan in mode Any: ordinary scoring chooses among the clusters",
    Mode.SINGLE: "all go where the first pod goes, which scheduling chooses",
}


def as_text(plan: PolicyPlan, targets: Mapping[str, str]) -> str:
    """Render a table for each workload, then the notes; `targets` has those of virtual nodes."""
    blocks = [_workload(plan, account, targets) for account in plan.accounts]
    if not blocks:
        blocks.append(
            f"{plan.policy.name} would be for no pod that there is: "
            "see its plan for an imaginary workload with --replicas N"
        )

    width = terminal.width()
    blocks += ["\n".join(wrapping.wrapped(f"Note: {note}", width)) for note in plan.notes]
    return "\n\n".join(blocks)


def _workload(plan: PolicyPlan, account: WorkloadAccount, targets: Mapping[str, str]) -> str:
    title = f"{account.workload}: {account.replicas} replicas, {plan.policy.mode.value}"
    lines = [terminal.styled(visible.line(title), bold=True)]
    if account.targets:
        columns = [
            Column("TARGET", lambda row: targets.get(row.cluster, row.cluster), names_row=True),
            Column("PLANNED", lambda row: _number(row.planned)),
            Column("RUNNING", lambda row: str(row.running)),
            Column("WAITING", lambda row: str(row.waiting)),
            Column("DIFFERENCE", _difference, is_bad=lambda row: bool(row.difference)),
        ]
        if any(target.placeholders for target in account.targets):
            columns.insert(4, Column("PLACEHOLDERS", lambda row: str(row.placeholders)))

        lines += tables.lines(columns, account.targets)

    if all(target.planned is None for target in account.targets):
        lines.append(_NO_PLAN.get(plan.policy.mode, "no cluster of the policy takes its pods now"))

    if account.unplaced:
        lines.append(
            f"{account.unplaced} replicas have no place: raise maxReplicas, or add clusters"
        )

    return "\n".join(lines)


def _number(count: int | None) -> str:
    return "-" if count is None else str(count)


def _difference(row: ClusterAccount) -> str:
    return "-" if row.difference is None else f"{row.difference:+}" if row.difference else "0"


def as_object(plan: PolicyPlan, targets: Mapping[str, str]) -> Object:
    """Convert the plan to the object of `-o json` and `-o yaml`."""
    return {
        "apiVersion": "vnode.dev/v1alpha1",
        "kind": "PlacementPlan",
        "policy": plan.policy.name,
        "mode": plan.policy.mode.value,
        "workloads": [
            {
                "workload": account.workload,
                "replicas": account.replicas,
                "unplaced": account.unplaced,
                "targets": [
                    {
                        "cluster": row.cluster,
                        "target": targets.get(row.cluster, ""),
                        "planned": row.planned,
                        "running": row.running,
                        "waiting": row.waiting,
                        "placeholders": row.placeholders,
                        "difference": row.difference,
                    }
                    for row in account.targets
                ],
            }
            for account in plan.accounts
        ],
        "notes": list(plan.notes),
    }
