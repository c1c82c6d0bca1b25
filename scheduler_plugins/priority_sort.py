"""QueueSort: by priority, then by the time since which a pod has waited for an attempt."""

from __future__ import annotations

from vnode.scheduling.plugin import QueueSortPlugin
from vnode.scheduling.queued_pod import QueuedPod


class PrioritySort(QueueSortPlugin):
    """Sorts pods as kube-scheduler does."""

    NAME = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        """Return the negated priority, then the time of the last attempt, or of the arrival."""
        return -queued.priority, queued.since
