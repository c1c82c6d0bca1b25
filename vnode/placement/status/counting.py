"""Counts the pods of each workload of each policy, one change at a time. Pure.

A pod that has finished, or is ending, is none of its workload's replicas: its owner has made
another one, or will.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from vnode.api import objects, placeholders
from vnode.api.objects import Object
from vnode.planning.policy import Policy
from vnode.planning.revisions import (
    UNREVISED,
    Revision,
    RevisionCounts,
    revision_of,
)
from vnode.planning.workload_key import workload_of


class CountedPod(NamedTuple):
    """What is counted of a pod."""

    policy: str
    """The key of the policy's object."""
    workload: str
    namespace: str
    uid: str
    node: str
    """"" while it is not bound."""
    runs: bool
    placeholders: tuple[str, ...] = ()
    """Virtual nodes where it waits for room, too."""
    revision: Revision = UNREVISED
    created: str = ""


@dataclass(slots=True)
class WorkloadTally:
    """The pods of a workload."""

    namespace: str
    replicas: int = 0
    running: Counter[str] = field(default_factory=Counter)
    """Virtual node -> pods that run there."""
    starting: Counter[str] = field(default_factory=Counter)
    """Virtual node -> pods that are bound to it and do not run yet."""
    placeholders: Counter[str] = field(default_factory=Counter)
    """Virtual node -> pods that run elsewhere and wait there for room."""
    unbound: dict[str, str] = field(default_factory=dict)
    """Keys of the others -> their UIDs."""
    revisions: dict[Revision, RevisionCounts] = field(default_factory=dict)
    """How many pods each revision has, and where; empty where only their sum is known."""

    def by_revision(self) -> Mapping[Revision, RevisionCounts]:
        """Return how many pods each revision has, and where."""
        if self.revisions:
            return self.revisions

        return {UNREVISED: RevisionCounts(self.replicas, bound=self.running + self.starting)}

    def scaled(self, replicas: int) -> WorkloadTally:
        """Return the same workload as if it had another number of replicas, of one revision."""
        return dataclasses.replace(self, replicas=replicas, revisions={})

    def add(self, key: str, pod: CountedPod) -> None:
        """Count a pod."""
        self.replicas += 1
        counts = self.revisions.setdefault(pod.revision, RevisionCounts())
        counts.pods += 1
        counts.latest = max(counts.latest, pod.created)
        if pod.node:
            counts.bound[pod.node] += 1

        self.placeholders.update(pod.placeholders)
        if pod.node:
            (self.running if pod.runs else self.starting)[pod.node] += 1
        else:
            self.unbound[key] = pod.uid

    def remove(self, key: str, pod: CountedPod) -> None:
        """Undo `add`."""
        self.replicas -= 1
        revised = self.revisions[pod.revision]
        revised.pods -= 1
        if pod.node:
            revised.bound[pod.node] -= 1

        if not revised.pods:
            del self.revisions[pod.revision]

        for node in pod.placeholders:
            self.placeholders[node] -= 1
            if not self.placeholders[node]:
                del self.placeholders[node]

        if pod.node:
            counts = self.running if pod.runs else self.starting
            counts[pod.node] -= 1
            if not counts[pod.node]:
                del counts[pod.node]
        else:
            self.unbound.pop(key, None)


def counted(pod: Object, policy_of: Callable[[Object], Policy | None]) -> CountedPod | None:
    """Return what is counted of a pod, None for one that does not count for any policy's object."""
    if objects.is_finished(pod) or objects.is_terminating(pod):
        return None

    policy = policy_of(pod)
    if policy is None or policy.is_default:
        return None

    return CountedPod(
        policy.key,
        workload_of(pod, policy.group_by),
        objects.namespace(pod),
        objects.uid(pod),
        objects.node_name(pod),
        objects.status(pod).get("phase") == "Running",
        placeholders.of(pod),
        revision_of(pod),
        objects.created(pod),
    )


class WorkloadCounts:
    """The pods of all workloads that have a policy."""

    def __init__(self) -> None:
        self._pods: dict[str, CountedPod] = {}
        # Policy -> workload -> its pods. No empty tallies or dicts.
        self._tallies: dict[str, dict[str, WorkloadTally]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def keys(self) -> list[str]:
        """Return the keys of the pods that are counted."""
        return list(self._pods)

    def policy_of(self, key: str) -> str:
        """Return the policy by which a pod is counted, "" if it is not."""
        pod = self._pods.get(key)
        return pod.policy if pod else ""

    def of(self, policy: str) -> Mapping[str, WorkloadTally]:
        """Return the workloads of a policy; do not change them."""
        return self._tallies.get(policy, {})

    def set(self, key: str, pod: CountedPod | None) -> set[str]:
        """Count a pod so from now on, or not at all; return the policies whose counts changed."""
        before = self._pods.get(key)
        if pod == before:
            return set()

        changed = set()
        if before is not None:
            self._remove(key, before)
            changed.add(before.policy)

        if pod is not None:
            workloads = self._tallies.setdefault(pod.policy, {})
            workloads.setdefault(pod.workload, WorkloadTally(pod.namespace)).add(key, pod)
            self._pods[key] = pod
            changed.add(pod.policy)

        return changed

    def _remove(self, key: str, pod: CountedPod) -> None:
        del self._pods[key]
        workloads = self._tallies[pod.policy]
        tally = workloads[pod.workload]
        tally.remove(key, pod)
        if not tally.replicas:
            del workloads[pod.workload]
            if not workloads:
                del self._tallies[pod.policy]
