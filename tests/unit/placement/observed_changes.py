"""What `PlanChanges` finds when all policies are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vnode.planning.move_policy import RescheduleTrigger
from vnode.planning.plan_changes import PlanChanges
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode


def observe(
    changes: PlanChanges, policies: Mapping[str, Policy], nodes: Iterable[PlannedNode]
) -> dict[str, RescheduleTrigger]:
    """Return the keys of policies whose pods are to be moved, with what has changed."""
    seen = changes.observe(policies, nodes)
    return {key: change for key, change in seen if change is not None}
