"""Holds pods until their workloads are counted, which takes long where a namespace has thousands.

A plan needs all pods of its workload, and they are counted when somebody first asks by what a
policy groups them. In a cycle that would keep the whole agent waiting, and a pod that was rejected
instead would lose its candidates. So it is held before, until its namespace is counted in slices;
pods of others go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.planning.policy import Policies
from vnode.planning.workload_counts import Workloads
from vnode.runtime.sliced_work import SlicedWork
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.queued_pod import QueuedPod


class UncountedPods:
    """Holds pods in flight, and releases them; `run` counts."""

    def __init__(
        self, policies: Policies, workloads: Workloads, queue: SchedulingQueue, clock: Clock
    ) -> None:
        self._policies = policies
        self._workloads = workloads
        self._queue = queue
        # By namespace and what pods are grouped by: the UIDs of those that wait for that.
        self._held: dict[tuple[str, str], list[str]] = {}
        self._counting = SlicedWork(self._steps, clock)

    async def run(self) -> None:
        """Count until cancelled."""
        await self._counting.run()

    def hold(self, queued: QueuedPod) -> bool:
        """Hold a pod in flight if its workload is not counted; tell whether it is held."""
        policy = self._policies.of(queued.pod) if self._policies else None
        if policy is None:
            return False

        key = objects.namespace(queued.pod), policy.group_by
        if self._workloads.is_counted(*key):
            return False

        self._workloads.begin(*key)
        self._held.setdefault(key, []).append(queued.uid)
        self._queue.hold(queued.uid)
        self._counting.add(key)
        return True

    def _steps(self, key: tuple[str, str]) -> Iterator[None]:
        yield from self._workloads.steps(*key)
        for uid in self._held.pop(key, ()):
            self._queue.release(uid)
            yield
