"""Finds what Events of a delegate say of a failure that its status does not. No I/O."""

from __future__ import annotations

import re
from typing import Final

from vnode.insight.facts import Facts
from vnode.insight.failing import Failure, FailureKind

_BY_PROBE: Final = (0, 137, 143)
"""Exit codes of containers that the kubelet has asked, or forced, to end."""

_BACK_OFF: Final = re.compile(r"Back-off pulling image \S+$")
"""What says nothing of why an image is not pulled."""


def of(failure: Failure, facts: Facts) -> str:
    """Return what an Event says of a failure that the pod's status does not, after a colon."""
    match failure.kind:
        case FailureKind.NOT_READY:
            return unhealthy(facts)
        case FailureKind.CRASH if failure.exit_code in _BY_PROBE and failure.ended != "OOMKilled":
            return unhealthy(facts, "Liveness probe failed", "Startup probe failed")
        case FailureKind.IMAGE if _BACK_OFF.search(failure.text):
            return _last(facts, "Failed", "Failed to pull image")
        case _:
            return ""


def unhealthy(facts: Facts, *beginnings: str) -> str:
    return _last(facts, "Unhealthy", *beginnings)


def _last(facts: Facts, reason: str, *beginnings: str) -> str:
    """Return the message of the last Event of that reason, after a colon; "" if there is none."""
    of_reason = (e for e in facts.delegate_events if e.get("reason") == reason)
    told = [str(event.get("message") or "") for event in of_reason]
    found = [text for text in told if not beginnings or text.startswith(beginnings)]
    return f": {found[-1]}" if found else ""
