"""Says in Events why pods are moved, or cannot be. No I/O but for its recorder."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.kube.events import NORMAL, WARNING, EventRecorder, about
from vnode.placement.policies import decoding
from vnode.planning.moving import Decision, MoveReason, PlannedEviction
from vnode.planning.policy import Mode, Policy
from vnode.scheduling.snapshot import Snapshot

MOVED: Final = "Moved"
WAITS: Final = "MoveWaits"
FAILED: Final = "MoveFailed"


def explanation(
    policy: Policy, reason: MoveReason, eviction: PlannedEviction, snapshot: Snapshot
) -> str:
    """Return why a pod is moved."""
    source, target = shown(eviction.source, snapshot), shown(eviction.target, snapshot)
    whole = " for all" if policy.mode is Mode.SINGLE else ""
    return (
        f"moved by {policy.name} ({reason.value}): {eviction.there} of {eviction.replicas} run in "
        f"{source}, planned {eviction.planned}; {target} has room{whole}"
    )


def blocked(decision: Decision, snapshot: Snapshot) -> str:
    """Return why pods are left where they are."""
    names = ", ".join(shown(node, snapshot) for node in decision.full)
    return f"{decision.why} in {names}" if names else decision.why


def shown(node: str, snapshot: Snapshot) -> str:
    """Return the name of the node's target, if it is there."""
    info = snapshot.get(node)
    return info.virtual.target[1] if info else node


def moved(events: EventRecorder, policy: Object | None, pod: Object, why: str) -> None:
    """Tell it on the pod, and on its policy."""
    _record(events, policy, pod, NORMAL, MOVED, why)


def refused(events: EventRecorder, policy: Object | None, pod: Object, why: str) -> None:
    """Tell on the pod, and on its policy, that the pod cannot be evicted now."""
    _record(events, policy, pod, WARNING, WAITS, f"cannot be moved yet: {why}")


def blocked_on(
    events: EventRecorder,
    policy: Object | None,
    workload: str,
    reason: MoveReason,
    decision: Decision,
) -> None:
    """Tell on the policy why pods of a workload stay, although it wants them moved."""
    if policy is not None:
        message = f"{workload}: {decision.left} pods wait to be moved ({reason.value})"
        _tell_policy(events, policy, WARNING, WAITS, f"{message}: {decision.why}")


def failed(
    events: EventRecorder, policy: Object | None, workload: str, target: str, until: datetime
) -> None:
    """Tell on the policy that nothing is moved to a cluster for a while, and why."""
    if policy is not None:
        message = (
            f"{workload}: a pod that was moved to {target} did not become ready there; none is "
            f"moved there until {objects.timestamp(until)}, or until it has more room than it had"
        )
        _tell_policy(events, policy, WARNING, FAILED, message)


def _record(
    events: EventRecorder,
    policy: Object | None,
    pod: Object,
    type_: str,
    reason: str,
    message: str,
) -> None:
    events.event(about(pod), type_, reason, message)
    if policy is not None:
        _tell_policy(events, policy, type_, reason, f"pod/{objects.key(pod)}: {message}")


def _tell_policy(
    events: EventRecorder, policy: Object, type_: str, reason: str, message: str
) -> None:
    kind = decoding.kind_of(policy)
    reference = objects.reference(policy, kind.kind, kind.api_version)
    events.event(reference, type_, reason, message)
