"""Tells from the pods of a workload that is kept together that it was being moved. Pure.

Who moves it knows, but another leader does not, and the reason may be over by then: without this
the workload would stay half here, half there. So pods that are bound where all are to go say so,
by an annotation that the binding puts on them. It stays when the move is over. Then all pods are in
one place, or those elsewhere are younger: a change of the policy has had them begin there.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.planning.move_reasons import REASONS, MoveReason
from vnode.planning.workload import Workload

_REASONS: Final = {reason.value: reason for reason in REASONS}


def unfinished_move(workload: Workload) -> tuple[str, MoveReason] | None:
    """Return the node that all pods were on their way to, and why; None if all have arrived."""
    if len(workload.bound) < 2:
        return None

    pods = [member.pod for member in workload.members.values() if member.node]
    last = max(filter(moved_for, pods), key=objects.created, default={})
    reason, node = moved_for(last), objects.node_name(last)
    if reason is None or any(
        objects.created(p) > objects.created(last) for p in pods if objects.node_name(p) != node
    ):
        return None

    return node, reason


def moved_for(pod: Object) -> MoveReason | None:
    """Return why the workload of a bound pod was being moved to the pod's node then, if it was."""
    return _REASONS.get(objects.annotations(pod).get(keys.MOVED_TOGETHER, ""))


def mark(workload: Workload, node: str) -> str:
    """Return what a pod says that is bound to the node; "" if that is not where all are to go."""
    if workload.destination:
        return workload.moved_for if workload.destination == node else ""

    found = unfinished_move(workload)
    return found[1].value if found is not None and found[0] == node else ""
