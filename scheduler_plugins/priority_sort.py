"""QueueSort: by priority, then by the time a pod was added."""

from __future__ import annotations

from vnode.scheduling.plugin import QueueSortPlugin
from vnode.scheduling.queued_pod import QueuedPod


class PrioritySort(QueueSortPlugin):
    """Sorts pods as kube-scheduler does."""

    NAME = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        """Return the negated priority, then the time at which the pod was added."""
        return -queued.priority, queued.added
