"""Builds and reads DisruptionTarget, the condition of a pod that is not to blame for its end. Pure.

By it a Job's pod failure policy tells disruptions from failures. Kubernetes' own controllers write
it before they evict, preempt or collect a pod; vnode writes it before it deletes one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object

DISRUPTION_TARGET: Final = "DisruptionTarget"


def of(pod: Object) -> Object:
    """Return the condition; empty if the pod has none."""
    return objects.condition(pod, DISRUPTION_TARGET) or {}


def condition(reason: str, message: str, now: datetime) -> Object:
    """Build the condition of a pod that is disrupted now."""
    return {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": objects.timestamp(now),
    }
