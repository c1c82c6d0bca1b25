"""Reads since when a target's candidate scheduler is silent, by what the target's agent says.

The annotation is on the ClusterSummary, and only while that is so. Its absence says nothing: the
scheduler may live, or have no Lease by which to tell, or the agent may be an older one, or
Admiralty's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from vnode.api import objects

REASON: Final = "SchedulerSilent"
"""Why a target whose candidate scheduler is dead is not ready."""
CURE: Final = (
    "start it there, see its log (vnode doctor --target FILE); if it runs without leader election, "
    "delete its Lease"
)


def decode(text: object) -> datetime | None:
    """Return when the scheduler last gave a sign of life, by the target's clock."""
    since = objects.parse_timestamp(text) if isinstance(text, str) else None
    return since if since is not None and since.utcoffset() == timedelta() else None


def described(since: datetime) -> str:
    """Return a text that says that the scheduler is silent."""
    return (
        "the target's candidate scheduler does not run: it has not renewed its Lease since "
        f"{objects.timestamp(since)}"
    )
