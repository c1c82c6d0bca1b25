"""Remembers which room workloads were promised, until their pods have come or five minutes pass.

A promise is made in the moment of the answer, before the next workload is looked at. Each pod that
comes takes its part of it over: from then on the scheduler's own promise and the target's report
count it (`vnode.scheduling.promises`). The answers in the status of Workloads are the record of
promises: a new leader makes them anew of these (`controller`).

Pods say which workload they are of by an annotation, which the answer has Kueue put on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.shape import Shape
from vnode.kueue import workloads
from vnode.kueue.deciding import Placement

PROMISED_FOR: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class PromisedPodSet:
    """What one pod of a pod set takes: as a pod, and of a node."""

    pod: Object
    shape: Shape


@dataclass(slots=True)
class _WorkloadPromise:
    since: datetime
    placement: Placement
    pods: Mapping[str, PromisedPodSet]
    come: dict[str, tuple[str, str]] = field(default_factory=dict)  # UID -> pod set, node
    ignored: frozenset[str] = frozenset()  # UIDs of pods of an earlier admission


class PromisedRoom:
    """All promises, by the key of the workload; moments are those of the API server's clock."""

    def __init__(self) -> None:
        self._promises: dict[str, _WorkloadPromise] = {}
        self._recent: set[str] = set()  # those that may be in force
        # By workload, of those that exist and are marked: UID -> the pod.
        self._pods: dict[str, dict[str, Object]] = {}

    def make(
        self,
        key: str,
        placement: Placement,
        pods: Mapping[str, PromisedPodSet],
        since: datetime,
        *,
        anew: bool,
    ) -> None:
        """Promise a workload its room; a promise that there is already stays as it is.

        `anew` for an answer of this moment: pods that are still there are of an earlier admission.
        """
        if key in self._promises and not anew:
            return

        present = self._pods.get(key, {})
        ignored = frozenset(present) if anew else frozenset()
        promise = self._promises[key] = _WorkloadPromise(since, placement, pods, ignored=ignored)
        self._recent.add(key)
        for pod in present.values():
            _note(promise, pod)

    def drop(self, key: str) -> None:
        """End the promise of a workload."""
        self._promises.pop(key, None)
        self._recent.discard(key)

    def has(self, key: str) -> bool:
        """Tell whether a workload has a promise, which may be over."""
        return key in self._promises

    def pods(self, key: str) -> list[Object]:
        """Return the pods of a workload that are there, but for those of an earlier admission."""
        promise = self._promises.get(key)
        ignored = promise.ignored if promise is not None else frozenset()
        return [pod for uid, pod in self._pods.get(key, {}).items() if uid not in ignored]

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Take the change of a pod that may be of a workload."""
        pod = objects.latest(old, new)
        member = workloads.membership(pod)
        if member is None:
            return

        key = member[0]
        if new is None:
            there = self._pods.get(key, {})
            there.pop(objects.uid(pod), None)
            if not there:
                self._pods.pop(key, None)
        else:
            self._pods.setdefault(key, {})[objects.uid(pod)] = new

        if (promise := self._promises.get(key)) is not None:
            _note(promise, pod)

    def by_node(
        self, now: datetime, *, but: str = ""
    ) -> dict[str, list[tuple[PromisedPodSet, int]]]:
        """Return what of each target is promised to workloads other than `but`, and not taken."""
        found: dict[str, list[tuple[PromisedPodSet, int]]] = {}
        for promise in self._in_force(now, but).values():
            come = Counter(promise.come.values())
            for pod_set, nodes in promise.placement.items():
                for node, count in nodes.items():
                    if (left := count - come[pod_set, node]) > 0:
                        found.setdefault(node, []).append((promise.pods[pod_set], left))

        return found

    def awaited(self, now: datetime, *, but: str = "") -> set[str]:
        """Return the UIDs of pods that are on their way, and still have their part of
        `by_node`.

        The scheduler may keep room for them, too.
        """
        return {
            uid
            for key, promise in self._in_force(now, but).items()
            for uid in self._pods.get(key, {})
            if uid not in promise.come and uid not in promise.ignored
        }

    def _in_force(self, now: datetime, but: str) -> dict[str, _WorkloadPromise]:
        """Return the promises that count; most workloads run for much longer than theirs."""
        over = {key for key in self._recent if now >= self._promises[key].since + PROMISED_FOR}
        self._recent -= over
        return {key: self._promises[key] for key in sorted(self._recent) if key != but}


def _note(promise: _WorkloadPromise, pod: Object) -> None:
    """Count a pod that takes its room; once it did, for good.

    A proxy that is bound has its place in the target, and until the target reports that, the
    scheduler keeps it. Of a pod that others bound nothing is known before it runs.
    """
    uid, node, member = objects.uid(pod), objects.node_name(pod), workloads.membership(pod)
    if member is None or not node or uid in promise.ignored:
        return

    is_proxy = objects.spec(pod).get("schedulerName") == keys.PROXY_SCHEDULER
    if is_proxy or objects.status(pod).get("phase", "Pending") != "Pending":
        promise.come.setdefault(uid, (member[1], node))
