"""Reads the sign of life of a target's agent, which ends.

The agent renews the annotation `vnode.dev/heartbeat` of its ClusterSummary. The summary itself
outlives the agent: Admiralty, back in its place, keeps annotations that it does not know.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import keys, objects, summary_reports
from vnode.api.objects import Object

TIMEOUT: Final = 180.0  # seconds without a heartbeat: three are missing


def is_recent(summary: Object, now: datetime) -> bool:
    """Tell whether a summary has a heartbeat of vnode's that is not overdue, for who looks once."""
    annotations = objects.annotations(summary)
    age = summary_reports.heartbeat_age(annotations, now)
    return keys.AGENT_VERSION in annotations and age is not None and age < TIMEOUT
