"""Counts the pods of workloads by virtual node, for placement policies.

What a workload is depends on its policy (`groupBy`). So nothing is counted before somebody asks:
then the pods of the namespace are, once, and from then on each that comes, changes or goes, until
no policy in force divides pods so any more. Where there are no policies, this costs one entry for
each pod. There may be thousands, and a tenant may have them divided otherwise at any time: so who
can wait has them counted in slices first, and nobody sees a workload of which a part is counted.

Only pods that live count. A terminating one is being replaced, or will be once it is gone, of which
moves take note; one that has finished takes no place, so the plan of a Job is about the pods that
it runs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.unfinished import UnfinishedWork
from vnode.planning.deleted_replicas import is_replaced_when_gone
from vnode.planning.workload import Workload
from vnode.planning.workload_key import workload_of

FEW: Final = 500
"""Pods of a namespace that are counted in one step: 15 ms."""


@dataclass(slots=True)
class _Group:
    """The workloads of one namespace, as one `groupBy` divides its pods."""

    by: str
    workloads: dict[str, Workload] = field(default_factory=dict)
    of: dict[str, Workload] = field(default_factory=dict)  # by UID of a pod
    counting: UnfinishedWork = field(default_factory=UnfinishedWork)
    """What is left of counting those that were there already; until it is over, nobody reads."""

    def set(self, counted: _CountedPod, assumed: Collection[str]) -> bool:
        pod = counted.pod
        is_labelled = bool(self.by) and self.by in objects.labels(pod)
        key = workload_of(pod, self.by) if is_labelled else counted.owned
        uid = objects.uid(pod)
        known, freed = self.of.get(uid), False
        if known is not None and known.key != key:
            freed = self.remove(uid)

        workload = self.workloads.get(key)
        if workload is None:
            workload = self.workloads[key] = Workload(key)

        self.of[uid] = workload
        if objects.is_terminating(pod):
            return workload.end(pod) or freed

        return workload.put(pod, assumed) or freed

    def remove(self, uid: str) -> bool:
        workload = self.of.pop(uid, None)
        if workload is None:
            return False

        freed = workload.remove(uid)
        self.tidy(workload)
        return freed

    def tidy(self, workload: Workload) -> None:
        """Forget a workload without pods, unless the next one is to go to a certain node."""
        is_ending = any(not each.is_gone for each in workload.deleted)
        if not (workload.members or is_ending or workload.destination):
            self.workloads.pop(workload.key, None)


@dataclass(slots=True)
class _CountedPod:
    """A pod, as each way to divide pods into workloads needs it."""

    pod: Object
    _owned: str = ""

    @property
    def owned(self) -> str:
        """The key of its workload where no label divides them."""
        if not self._owned:
            self._owned = workload_of(self.pod)

        return self._owned


class Workloads:
    """All workloads that policies have asked for; the cache writes them."""

    def __init__(self, assumed: Callable[[str], Collection[str]]) -> None:
        self._assumed = assumed  # the nodes on which the pod of a UID is counted
        # Live pods, and those that are replaced when they are gone: by namespace, then by UID. No
        # empty dicts.
        self._pods: dict[str, dict[str, _CountedPod]] = {}
        self._namespaces: dict[str, str] = {}  # of each of those
        self._groups: dict[str, dict[str, _Group]] = {}  # by namespace, then by `groupBy`

    def of(self, pod: Object, group_by: str) -> Workload:
        """Return the workload of a pod, which need not be known."""
        key = workload_of(pod, group_by)
        return self._group(objects.namespace(pod), group_by).workloads.get(key) or Workload(key)

    def is_counted(self, namespace: str, group_by: str) -> bool:
        """Tell whether it takes no time to ask: all pods are counted so, or there are few."""
        if len(self._pods.get(namespace, ())) <= FEW:
            return True

        group = self._groups.get(namespace, {}).get(group_by)
        return group is not None and group.counting.is_over

    def begin(self, namespace: str, group_by: str) -> None:
        """Have the pods of a namespace counted by what a policy in force groups by; see `steps`."""
        self._begun(namespace, group_by)

    def steps(self, namespace: str, group_by: str) -> Iterator[None]:
        """Go on with counting that was begun, a pod at a time, as long as a policy groups so."""
        group = self._groups.get(namespace, {}).get(group_by)
        return iter(()) if group is None else group.counting.steps()

    async def count(self, pod: Object, group_by: str, clock: Clock) -> None:
        """Count, in slices, the pods of a pod's namespace by what a policy in force groups by.

        Await it before `of`, where that can wait.
        """
        namespace = objects.namespace(pod)
        if not self.is_counted(namespace, group_by):
            await self._begun(namespace, group_by).counting.over(clock)

    def weights(self, key: str, group_by: str) -> Mapping[str, int] | None:
        """Return what each node weighs for a workload whose shares go by free capacity.

        None if none of its pods was planned so since it is counted.
        """
        group = self._known(key, group_by)
        workload = group.workloads.get(key) if group else None
        return workload.weights if workload else None

    def end_move(self, key: str, group_by: str) -> None:
        """Have the pods of a workload that was moved as one go where its others are again."""
        group = self._known(key, group_by)
        workload = group.workloads.get(key) if group else None
        if group is not None and workload is not None:
            workload.end_move()
            group.tidy(workload)

    def forget(self) -> None:
        """Count nothing until somebody asks again."""
        for group in [each for groups in self._groups.values() for each in groups.values()]:
            group.counting.drop()

        self._groups.clear()

    def keep(self, namespace: str, groupings: Callable[[str], Collection[str]]) -> None:
        """Count pods of a namespace no longer by what no policy groups by; "" for all namespaces.

        `groupings` returns what policies for pods of one group by.
        """
        for each in (namespace,) if namespace else tuple(self._groups):
            if (groups := self._groups.get(each)) is None:
                continue

            wanted = groupings(each)
            for by in groups.keys() - wanted:
                groups.pop(by).counting.drop()

            if not groups:
                del self._groups[each]

    def set(self, pod: Object) -> bool:
        """Take a pod as the API server has it; return True if others may go elsewhere now."""
        uid, namespace = objects.uid(pod), objects.namespace(pod)
        is_over = objects.is_finished(pod)
        if objects.is_terminating(pod):
            is_over = not is_replaced_when_gone(pod)

        if is_over:
            return self.remove(uid)

        counted = _CountedPod(pod)
        self._pods.setdefault(namespace, {})[uid] = counted
        self._namespaces[uid] = namespace
        if not self._groups:
            return False

        freed = False
        for group in self._groups.get(namespace, {}).values():
            freed |= group.set(counted, self._assumed(uid))

        return freed

    def remove(self, uid: str) -> bool:
        """Stop counting a pod; return True if a place planned for it is free again."""
        namespace = self._namespaces.pop(uid, None)
        if namespace is None:
            return False

        pods = self._pods[namespace]
        del pods[uid]
        if not pods:
            del self._pods[namespace]

        freed = False
        for group in self._groups.get(namespace, {}).values():
            freed |= group.remove(uid)

        return freed

    def assume(self, uid: str) -> None:
        """Take note that a pod is counted on other nodes than before."""
        if self._groups:
            for group in self._groups.get(self._namespaces.get(uid, ""), {}).values():
                if workload := group.of.get(uid):
                    workload.assume(uid, self._assumed(uid))

    def _known(self, key: str, by: str) -> _Group | None:
        """Return the group of a workload if it is counted."""
        group = self._groups.get(key.split("/", 2)[1], {}).get(by)
        if group is not None:
            group.counting.finish()

        return group

    def _group(self, namespace: str, by: str) -> _Group:
        group = self._begun(namespace, by)
        group.counting.finish()
        return group

    def _begun(self, namespace: str, by: str) -> _Group:
        groups = self._groups.setdefault(namespace, {})
        group = groups.get(by)
        if group is None:
            group = groups[by] = _Group(by)
            group.counting.begin(self._count(namespace, group))

        return group

    def _count(self, namespace: str, group: _Group) -> Iterator[None]:
        """Count the pods that are there, but for those that were counted when they changed."""
        for uid in tuple(self._pods.get(namespace, ())):
            counted = self._pods.get(namespace, {}).get(uid)
            if counted is not None and uid not in group.of:
                group.set(counted, self._assumed(uid))
                yield
