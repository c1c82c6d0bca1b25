"""Knows the pods that have placeholders: by key, by node, and by workload where a plan wants them.

Users can write what says where a pod has some, and of many pods. So what happens at one node, or to
one workload, looks at the pods that it is about, and at no others. No I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from vnode.api import placeholders
from vnode.api.objects import Object


class PlannedPods(NamedTuple):
    """A workload that has placeholders."""

    node: str  # "": the lane of what asks no target
    workload: str
    group_by: str


class PlaceholderPods:
    """The pods that have placeholders, as they were seen last."""

    def __init__(self) -> None:
        self._pods: dict[str, Object] = {}  # by key
        # Keys of pods by node, by workload, and the workload of a key; no empty ones.
        self._at: dict[str, dict[str, None]] = {}
        self._members: dict[PlannedPods, dict[str, None]] = {}
        self._group_of: dict[str, PlannedPods] = {}

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def groups(self) -> Mapping[PlannedPods, Mapping[str, None]]:
        """The keys of the pods of each workload whose policy has a plan; do not change."""
        return self._members

    def get(self, key: str) -> Object | None:
        """Return the pod of a key, if it has placeholders."""
        return self._pods.get(key)

    def at(self, node: str) -> Sequence[str]:
        """Return the keys of the pods that have a placeholder on a node."""
        return tuple(self._at.get(node, ()))

    def count(self, node: str) -> int:
        """Count the placeholders on a node."""
        return len(self._at.get(node, ()))

    def of(self, group: PlannedPods) -> Iterator[Object]:
        """Yield the pods of a workload."""
        return (self._pods[key] for key in self._members.get(group, ()))

    def put(self, key: str, pod: Object) -> None:
        """Add a pod that has placeholders, and is not known."""
        self._pods[key] = pod
        for node in placeholders.of(pod):
            self._at.setdefault(node, {})[key] = None

    def pop(self, key: str) -> Object | None:
        """Forget a pod; return it as it was, if it was known."""
        pod = self._pods.pop(key, None)
        if pod is not None:
            self.leave(key)
            for node in placeholders.of(pod):
                del self._at[node][key]
                if not self._at[node]:
                    del self._at[node]

        return pod

    def join(self, key: str, group: PlannedPods) -> None:
        """Take note that a plan is about a pod, as one of a workload."""
        self.leave(key)
        self._members.setdefault(group, {})[key] = None
        self._group_of[key] = group

    def leave(self, key: str) -> None:
        """Take note that no plan is about a pod."""
        group = self._group_of.pop(key, None)
        if group is not None:
            del self._members[group][key]
            if not self._members[group]:
                del self._members[group]
