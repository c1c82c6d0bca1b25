"""Remembers which room workloads were promised, until their pods have come or five minutes pass.

A promise is made in the moment of the answer, before the next workload is looked at. Each pod that
comes takes its part of it over: from then on the scheduler's own promise and the target's report
count it (`vnode.scheduling.promises`). The answers in the status of Workloads are the record of
promises: a new leader makes them anew of these (`controller`).

Pods say which workload they are of by an annotation, which the answer has Kueue put on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
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


@dataclass(frozen=True, slots=True)
class PromisedPart:
    """What of the promise of one workload is left."""

    left: Sequence[tuple[str, PromisedPodSet, int]]
    """Node, pod set, and how many of its pods."""
    awaited: Set[str]
    """The UIDs of pods that are on their way, and still have their part of `left`: the scheduler
    may keep room for them, too."""


@dataclass(slots=True)
class _WorkloadPromise:
    since: datetime
    placement: Placement
    pods: Mapping[str, PromisedPodSet]
    come: set[str] = field(default_factory=set)  # UIDs
    taken: Counter[tuple[str, str]] = field(default_factory=Counter)  # by pod set and node
    ignored: frozenset[str] = frozenset()  # UIDs of pods of an earlier admission


class PromisedRoom:
    """All promises, by the key of the workload; moments are those of the API server's clock."""

    def __init__(self) -> None:
        self._promises: dict[str, _WorkloadPromise] = {}
        self._recent: dict[str, None] = {}  # those that may be in force, the oldest first
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
        self._recent[key] = None
        for pod in present.values():
            _note(promise, pod)

    def drop(self, key: str) -> None:
        """End the promise of a workload."""
        self._promises.pop(key, None)
        self._recent.pop(key, None)

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

    def parts(self, now: datetime, *, but: str = "") -> Iterator[PromisedPart | None]:
        """Yield what each workload other than `but` is promised, and has not taken.

        None for each other that is looked at: there may be others' work in between. Most workloads
        run for much longer than their promises.
        """
        for key in list(self._recent):
            promise = self._promises.get(key)
            if promise is None or key == but:
                yield None
            elif now >= promise.since + PROMISED_FOR:
                self._recent.pop(key, None)
                yield None
            else:
                yield self._part(key, promise)

    def _part(self, key: str, promise: _WorkloadPromise) -> PromisedPart:
        left = [
            (node, promise.pods[pod_set], count - promise.taken[pod_set, node])
            for pod_set, nodes in promise.placement.items()
            for node, count in nodes.items()
        ]
        awaited = self._pods.get(key, {}).keys() - promise.come - promise.ignored
        return PromisedPart([each for each in left if each[2] > 0], awaited)


def _note(promise: _WorkloadPromise, pod: Object) -> None:
    """Count a pod that takes its room; once it did, for good.

    A proxy that is bound has its place in the target, and until the target reports that, the
    scheduler keeps it. Of a pod that others bound nothing is known before it runs.
    """
    uid, node, member = objects.uid(pod), objects.node_name(pod), workloads.membership(pod)
    if member is None or not node or uid in promise.ignored:
        return

    is_proxy = objects.spec(pod).get("schedulerName") == keys.PROXY_SCHEDULER
    has_come = is_proxy or objects.status(pod).get("phase", "Pending") != "Pending"
    if has_come and uid not in promise.come:
        promise.come.add(uid)
        promise.taken[member[1], node] += 1
