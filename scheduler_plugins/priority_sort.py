"""QueueSort: the higher priority first, then the longer known."""

from __future__ import annotations

from vnode.scheduling.plugin import QueueSortPlugin
from vnode.scheduling.queued_pod import QueuedPod


class PrioritySort(QueueSortPlugin):
    """The order of kube-scheduler."""

    NAME = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        """Priority falling, then age."""
        return -queued.priority, queued.added
