"""Says in Events why pods are moved, or cannot be. No I/O but for its recorder."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.kube.events import NORMAL, WARNING, EventRecorder, about
from vnode.placement.moves.demands import MovingPolicies
from vnode.placement.policies import decoding
from vnode.planning.move_reasons import MoveReason
from vnode.planning.move_state import Decision
from vnode.planning.policy import Policy

MOVED: Final = "Moved"
WAITS: Final = "MoveWaits"
FAILED: Final = "MoveFailed"


class MoveEvents:
    """Records the Events of moves."""

    def __init__(self, recorder: EventRecorder, policies: MovingPolicies) -> None:
        self._recorder = recorder
        self._policies = policies

    def moved(self, policy: Policy, pod: Object, why: str) -> None:
        """Tell it on the pod, and on its policy."""
        self._tell_both(policy, pod, NORMAL, MOVED, why)

    def refused(self, policy: Policy, pod: Object, why: str) -> None:
        """Tell on the pod, and on its policy, that the pod cannot be evicted now."""
        self._tell_both(policy, pod, WARNING, WAITS, f"cannot be moved yet: {why}")

    def blocked(
        self, policy: Policy, workload: str, reason: MoveReason, decision: Decision
    ) -> None:
        """Tell on the policy why pods of a workload stay, although it wants them moved."""
        waits = f"{workload}: {decision.left} pods wait to be moved ({reason.value})"
        self._tell_policy(policy, WARNING, WAITS, f"{waits}: {decision.why}")

    def failed(self, policy: Policy, workload: str, target: str, until: datetime) -> None:
        """Tell on the policy that nothing is moved to a cluster for a while, and why."""
        message = (
            f"{workload}: a pod that was moved to {target} did not become ready there; none is "
            f"moved there until {objects.timestamp(until)}, or until it has more room than it had"
        )
        self._tell_policy(policy, WARNING, FAILED, message)

    def _tell_both(self, policy: Policy, pod: Object, type_: str, what: str, message: str) -> None:
        self._recorder.event(about(pod), type_, what, message)
        self._tell_policy(policy, type_, what, f"pod/{objects.key(pod)}: {message}")

    def _tell_policy(self, policy: Policy, type_: str, what: str, message: str) -> None:
        if (obj := self._policies.get(policy.key)) is not None:
            kind = decoding.kind_of(obj)
            reference = objects.reference(obj, kind.kind, kind.api_version)
            self._recorder.event(reference, type_, what, message)
