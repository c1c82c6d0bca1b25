"""Remembers what the pod of a cycle counts for in quotas, where targets have equal limits.

Each target is asked twice in a cycle, by two plugins, and what is found takes a look at each
container of the pod. Most targets have the same limits for a namespace, or none. Nothing is kept of
any pod but the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vnode.api import objects, resource_quotas
from vnode.api.limit_ranges import LimitRange
from vnode.api.objects import Object
from vnode.api.priorities import PriorityMapping
from vnode.api.resource_quotas import QuotaUsage
from vnode.scheduling.quota_answers import PodKind, kind_of


@dataclass(slots=True)
class _KnownUsage:
    ranges: Sequence[LimitRange]
    class_name: str
    usage: QuotaUsage
    kind: PodKind | None = None
    """None until somebody has asked."""


class KnownUsages:
    """The usages of one pod; those of all targets share it."""

    def __init__(self) -> None:
        self._pod: Object | None = None
        self._known: list[_KnownUsage] = []  # of that pod, which nobody changes; no two are equal

    def of(
        self, pod: Object, ranges: Sequence[LimitRange], priorities: PriorityMapping
    ) -> QuotaUsage:
        """Return what a pod counts for where there are these limits; raises like `usage_of`."""
        if pod is not self._pod:
            self._pod, self._known = pod, []

        name = priorities.choose(objects.spec(pod)).name
        for each in self._known:
            if each.class_name == name and each.ranges == ranges:
                return each.usage

        usage = resource_quotas.usage_of(pod, ranges, priorities)
        self._known.append(_KnownUsage(ranges, name, usage))
        return usage

    def kind(self, usage: QuotaUsage) -> PodKind:
        """Return of which kind a pod is, by what it counts for."""
        for each in self._known:
            if each.usage is usage:
                if each.kind is None:
                    each.kind = kind_of(usage)

                return each.kind

        return kind_of(usage)
