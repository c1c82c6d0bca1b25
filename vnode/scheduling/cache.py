"""Caches targets and placed proxies for the scheduler, updated by one change at a time.

Targets report their free resources at most once a second, while the scheduler places hundreds of
pods a second. So each promise is subtracted from the last report of its target until a later report
includes it (`promises`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vnode.api import objects, owners, pod_terms, resources
from vnode.api.objects import Object
from vnode.api.pod_terms import PodTerm
from vnode.api.priorities import PriorityMapping
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.api.unfinished import UnfinishedWork
from vnode.planning.workload_counts import Workloads
from vnode.scheduling.claim_users import ClaimUsers
from vnode.scheduling.node_rows import NodeRows
from vnode.scheduling.pod_counts import BoundPod, PodCounts
from vnode.scheduling.promises import Promises
from vnode.scheduling.quotas import Quotas
from vnode.scheduling.snapshot import Snapshot, VirtualNode, VirtualNodeInfo


@dataclass(slots=True)
class _NodeInfo:
    """Holds what the cache knows about one node, which may be unknown (yet, or no longer)."""

    virtual: VirtualNode | None
    # The sum over all proxies on this node.
    requested: Resources
    # The target's last report, if there ever was one.
    free: Resources | None = None
    largest: Resources | None = None
    rows: Rows | None = None
    # Built from the fields above when it is read; None after a change.
    info: VirtualNodeInfo | None = None


@dataclass(frozen=True, slots=True)
class _Placed:
    pod: BoundPod
    requests: Resources
    is_counted: bool  # terminating pods hold their resources and do not count for spreading
    anti_affinity: Object = field(compare=False)  # what `pod.repels` was compiled of


class Cache:
    """Keeps the scheduler's state, read as snapshots. Times are the clock's monotonic seconds.

    `constraints` is that of `Handle`.
    """

    def __init__(self, constraints: Callable[[Object], Object | None] = objects.spec) -> None:
        self.quotas = Quotas()
        self.promising = UnfinishedWork()
        """Promises to many pods, of which nobody sees a half: those who read may wait for it."""
        self.claim_users = ClaimUsers()
        self._node_infos: dict[str, _NodeInfo] = {}
        # Pod UID -> node that it is on, or on its way to. No empty dicts.
        self._placed: dict[str, dict[str, _Placed]] = {}
        # By UID, of pods that wait: required anti-affinity, and what that was compiled to.
        self._prepared: dict[str, tuple[Object, tuple[PodTerm, ...]]] = {}
        # Of pods and nodes in `_placed`.
        self._promises = Promises(constraints, self.promising)
        self._pod_counts = PodCounts()
        self.workloads = Workloads(lambda uid: self._placed.get(uid, ()))
        # The nodes of the last snapshot; None if any of them changed.
        self._snapshot_nodes: tuple[VirtualNodeInfo, ...] | None = ()
        self._generation = 0

    @property
    def generation(self) -> int:
        """Number that differs after each change; while it is equal, so are all snapshots."""
        return self._generation + self.quotas.generation

    def update_node(self, virtual: VirtualNode) -> None:
        """Add a virtual node, or replace it by a newer version."""
        node_info = self._node_info(virtual.name)
        node_info.virtual = virtual
        self.quotas.set_priorities(
            virtual.name, PriorityMapping(virtual.priority_classes, virtual.classes)
        )
        self._changed(node_info)

    def remove_node(self, name: str) -> None:
        """Remove a node that was deleted; proxies still bound to it stay counted.

        What its target has reported stays known, too: the node may be made anew.
        """
        if node_info := self._node_infos.get(name):
            node_info.virtual = None
            self._changed(node_info)
            self._drop_if_empty(name)

    def remove_target(self, name: str) -> None:
        """Remove the node of a target that is gone, and what the target has reported."""
        self._promises.set_rows(name, None, None)  # they can outlive the virtual node
        if node_info := self._node_infos.get(name):
            node_info.free = node_info.largest = node_info.rows = None
            self.remove_node(name)

    def update_free(
        self,
        name: str,
        free: Resources | None,
        largest: Resources | None,
        nodes: NodeRows | None = None,
        rows: Rows | None = None,
    ) -> bool:
        """Set what the target reports as free now; None if it reports no such thing.

        `nodes` are those on which promises count. Promises that were `observe`d before are taken to
        be in the report. Return True if there is more left than before, or it cannot be compared: a
        pod may fit that did not. Of very many promises it is not known then what they leave.
        """
        node_info = self._node_info(name)
        before, largest_before = self._left(name), self._largest(name)
        rows_before = self._rows(name)
        node_info.free, node_info.largest, node_info.rows = free, largest, rows
        self._promises.reported(name)
        self._promises.set_rows(name, nodes, rows)
        self._changed(node_info)
        return (
            _grew(before, self._left(name))
            or _grew(largest_before, self._largest(name))
            or ((left := self._rows(name)) is not None and left.grew_from(rows_before))
        )

    def prepare(self, pod: Object) -> None:
        """Read what takes long of a pod that is to be assumed with many others, in one step."""
        if anti_affinity := pod_terms.anti_affinity(pod):
            self._prepared[objects.uid(pod)] = anti_affinity, pod_terms.repelled(pod)

    def assume(self, pod: Object, node: str, now: float, requests: Resources | None = None) -> None:
        """Count the pod on the node that it is on its way to, and promise it its `requests`.

        These are read of the pod if they are not given.
        """
        uid = objects.uid(pod)
        self._place(uid, node, pod, requests)
        self._promises.make(pod, node, self._placed[uid][node].requests, now)
        self.quotas.promise(pod, node)
        self._changed(self._node_infos[node])
        self.workloads.assume(uid)

    def observe(self, uid: str, node: str, now: float) -> None:
        """Note that the target itself counts the pod, which has a node: its next report has it."""
        self._promises.observe(uid, node, now)

    def next_lapse(self) -> float | None:
        """Return when the next promise lapses; None if there is none."""
        return self._promises.next_lapse()

    def lapse(self, now: float) -> set[str]:
        """End the promises whose time is over; return their nodes, which have more left."""
        nodes = self._promises.lapse(now)
        for node in nodes:
            self._changed(self._node_infos[node])

        return nodes

    def promised(self, node: str) -> dict[str, Resources]:
        """Return by UID what pods on their way take there that its last report does not have."""
        self.promising.finish()
        return self._promises.made(node)

    def reported(self, node: str) -> tuple[Resources | None, Rows | None]:
        """Return what a target has last reported as free, and its rows, whatever was promised."""
        info = self._node_infos.get(node)
        return (None, None) if info is None else (info.free, info.rows)

    def ending(self) -> dict[str, Resources]:
        """Return by node the sum of what terminating pods hold until they have ended."""
        self.promising.finish()
        totals: dict[str, Resources] = {}
        for nodes in self._placed.values():
            for node, placed in nodes.items():
                if not placed.is_counted:
                    totals[node] = resources.add(totals.get(node, {}), placed.requests)

        return totals

    def has(self, uid: str, node: str) -> bool:
        """Return whether the pod is counted on the node: bound to it, or on its way."""
        return node in self._placed.get(uid, ())

    def forget(self, uid: str, node: str) -> bool:
        """Undo `assume`: the pod will not go there. Return False if it was not counted."""
        counted = self.has(uid, node)
        self._displace(uid, node)
        self.workloads.assume(uid)
        return counted

    def set_pod(self, pod: Object) -> bool:
        """Count a proxy as the API server has it: its binding, labels and phase matter.

        A bound pod counts on its node and on no other, a finished one nowhere; a pod that is not
        bound leaves the assumptions about it alone. Return True if placement policies may now let
        others go elsewhere.
        """
        uid = objects.uid(pod)
        bound, is_finished = objects.node_name(pod), objects.is_finished(pod)
        if bound or is_finished:
            for node in list(self._placed.get(uid, ())):
                if is_finished or node != bound:
                    self._displace(uid, node)

        if bound and not is_finished:
            self._place(uid, bound, pod)

        if bound or is_finished:
            self._prepared.pop(uid, None)

        self.claim_users.set(pod)
        return self.workloads.set(pod)

    def remove_pod(self, uid: str) -> bool:
        """Stop counting a proxy that is gone; return like `set_pod`."""
        for node in list(self._placed.get(uid, ())):
            self._displace(uid, node)

        self._prepared.pop(uid, None)
        self.claim_users.remove(uid)
        return self.workloads.remove(uid)

    def target_name(self, node: str) -> str:
        """Return what a snapshot would; nothing has to be whole for that."""
        info = self._node_infos.get(node)
        virtual = info.virtual if info is not None else None
        return node if virtual is None else virtual.target[1]

    def snapshot(self) -> Snapshot:
        """Return the state at this moment; costs nothing where nothing changed."""
        self.promising.finish()
        if self._snapshot_nodes is None:
            infos = (self._info(name) for name in sorted(self._node_infos))
            self._snapshot_nodes = tuple(info for info in infos if info is not None)

        return Snapshot(
            *(self._snapshot_nodes, self._pod_counts, self.workloads, self.quotas), self.claim_users
        )

    def _place(self, uid: str, node: str, pod: Object, requests: Resources | None = None) -> None:
        old = self._placed.get(uid, {}).get(node)
        anti_affinity = pod_terms.anti_affinity(pod)
        if old is not None and old.anti_affinity == anti_affinity:
            repels = old.pod.repels  # long terms are compiled once, not at each change of the pod
        elif (prepared := self._prepared.get(uid)) and prepared[0] == anti_affinity:
            repels = prepared[1]
        else:
            repels = pod_terms.repelled(pod)

        counted = BoundPod(
            uid,
            node,
            objects.namespace(pod),
            owners.owner_key(pod),
            objects.labels(pod),
            repels,
        )
        is_counted = not objects.is_terminating(pod)
        if requests is None:
            requests = resources.pod_requests(pod)

        new = _Placed(counted, requests, is_counted, anti_affinity)
        if old == new:
            return

        if old is not None:
            self._uncount(old)

        self._placed.setdefault(uid, {})[node] = new
        node_info = self._node_info(node)
        node_info.requested = resources.add(node_info.requested, new.requests)
        if is_counted:
            self._pod_counts.add(counted)

        self._changed(node_info)

    def _displace(self, uid: str, node: str) -> None:
        nodes = self._placed.get(uid, {})
        placed = nodes.get(node)
        if placed is None:
            return

        self._promises.settle(uid, node)
        self.quotas.settle(uid, node)
        self._uncount(placed)
        del nodes[node]
        if not nodes:
            del self._placed[uid]

        self._drop_if_empty(node)

    def _uncount(self, placed: _Placed) -> None:
        node_info = self._node_infos[placed.pod.node]
        node_info.requested = resources.subtract(node_info.requested, placed.requests)
        if placed.is_counted:
            self._pod_counts.remove(placed.pod)

        self._changed(node_info)

    def _node_info(self, name: str) -> _NodeInfo:
        return self._node_infos.setdefault(name, _NodeInfo(virtual=None, requested={}))

    def _drop_if_empty(self, name: str) -> None:
        node_info = self._node_infos[name]
        is_known = node_info.virtual is not None or node_info.free is not None
        if not is_known and not node_info.requested.get(resources.PODS):
            del self._node_infos[name]

    def _changed(self, node_info: _NodeInfo) -> None:
        node_info.info = None
        self._snapshot_nodes = None
        self._generation += 1

    def _left(self, name: str) -> Resources | None:
        """Return what a target reported, less its promises; None if it reported nothing."""
        free, promised = self._node_infos[name].free, self._promises.on(name)
        return resources.subtract(free, promised) if free is not None and promised else free

    def _largest(self, name: str) -> Resources | None:
        """Return the most that is left on any one node of a target."""
        return self._promises.largest(name, self._node_infos[name].largest)

    def _rows(self, name: str) -> Rows | None:
        """Return what is left on the nodes of a target, by its rows."""
        return self._promises.rows(name, self._node_infos[name].rows)

    def _info(self, name: str) -> VirtualNodeInfo | None:
        """Return the node as it is now; None if its target is not known."""
        node_info = self._node_infos[name]
        if node_info.info is None and node_info.virtual is not None:
            node_info.info = VirtualNodeInfo(
                node_info.virtual,
                node_info.requested,
                self._left(name),
                self._largest(name),
                self._rows(name),
            )

        return node_info.info


def _grew(old: Resources | None, new: Resources | None) -> bool:
    if old is None or new is None:
        return True

    return any(amount > old.get(name, 0) for name, amount in new.items())
