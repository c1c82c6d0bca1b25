"""Why no target takes a pod, in one line, target by target.

The line goes into the pod's PodScheduled condition and into an Event, as the stock scheduler's
does: `0/3 targets: c2: 0/4 nodes are available: 4 Insufficient cpu; c3: unreachable for 3m`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAMES_SHOWN: Final = 3
EVENT_LIMIT: Final = 1024
"""Characters that the API allows in the note of an Event."""


def explain(reasons: Mapping[str, str], limit: int = EVENT_LIMIT) -> str:
    """One line from the reason of each target, in the mapping's order.

    Targets with one and the same reason are put together, three of them by name. The line is cut
    to `limit` characters at a reason's end where possible, and then says how many are left out.
    """
    if not reasons:
        return "0/0 targets: no Target or ClusterTarget is there for this namespace; connect one"

    head = f"0/{len(reasons)} targets: "
    grouped: dict[str, list[str]] = {}
    for target, reason in reasons.items():
        grouped.setdefault(_tidy(reason), []).append(target)

    parts = [f"{_names(targets)}: {reason}" for reason, targets in grouped.items()]
    for kept in range(len(parts), 0, -1):
        rest = f"; and {len(parts) - kept} more reasons" if kept < len(parts) else ""
        line = head + "; ".join(parts[:kept]) + rest
        if len(line) <= limit:
            return line

    return f"{head}{parts[0]}"[: limit - 3] + "..."


def _names(targets: list[str]) -> str:
    if len(targets) <= NAMES_SHOWN:
        return ", ".join(targets)

    return f"{', '.join(targets[:NAMES_SHOWN])} and {len(targets) - NAMES_SHOWN} more"


def _tidy(reason: str) -> str:
    """Without the line breaks and the final stop that messages of schedulers come with."""
    return " ".join(reason.split()).rstrip(".") or "no reason given"
