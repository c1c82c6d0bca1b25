"""Counts the pods of one workload: where they are, and where those without a node are to go.

A pod that has no node yet may have an aim, the node that it is planned for, and further nodes that
were opened for it since it waits. Both are chosen by the plugin PlacementPolicy, and stay until the
pod is bound or gone.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from vnode.api import objects, placeholders
from vnode.api.objects import Object
from vnode.planning import revisions, workload_pod
from vnode.planning.cluster_choice import ClusterChoice
from vnode.planning.deleted_replicas import DeletedReplicas
from vnode.planning.revisions import Revision, RevisionCounts, revision_of
from vnode.planning.seats import Seats, Share
from vnode.planning.waited_nodes import WaitedNodes
from vnode.planning.weighing import Weighting
from vnode.planning.workload_pod import WorkloadPod, unschedulable_since

_SEATS_KEPT: Final = 8  # of one workload: by which clusters are closed or full for some of its pods


class Workload:
    """The live pods of one workload, and what was decided about them.

    What others read of it they do not change: each change is a method. No counter has negative
    numbers or zeroes.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.members: dict[str, WorkloadPod] = {}
        self.counts = RevisionCounts()
        """Of all pods."""
        self.revisions: dict[Revision, RevisionCounts] = {}
        """Of those of each revision, none empty."""
        self.deleted = DeletedReplicas()
        self.waited = WaitedNodes(self.pending)
        self.bound = self.counts.bound
        self.aimed = self.counts.aimed
        self.opened = self.counts.opened
        self.held = self.counts.held
        self.placeholders = self.counts.placeholders
        # Node -> pods that were moved to it, and have no replacement yet that is to go there.
        self._directed: Counter[str] = Counter()
        self._destination = ""
        self._moved_for = ""
        self._restored = False
        self._weighting: Weighting | None = None
        self._seats: OrderedDict[tuple[Share, ...], Seats] = OrderedDict()
        self._newest: Object | None = None  # None: has to be found

    @property
    def directed(self) -> Mapping[str, int]:
        """Node -> pods that were moved to it, and have no replacement yet that is to go there."""
        return self._directed

    @property
    def destination(self) -> str:
        """The node that a workload which is kept together is being moved to; "" if it is not."""
        return self._destination

    @property
    def moved_for(self) -> str:
        """Why it is, or was last, moved as a whole, as pods that are bound there say."""
        return self._moved_for

    @property
    def restored(self) -> bool:
        """Whether pods got back the aims that they had before this process."""
        return self._restored

    @property
    def weights(self) -> Mapping[str, int] | None:
        """What each cluster weighs by free capacity; None if that is not known."""
        return self._weighting.weights if self._weighting else None

    @property
    def weighting(self) -> Weighting | None:
        """Its shares by free capacity, as they were weighed last; None if none were."""
        return self._weighting

    @property
    def newest(self) -> Object | None:
        """The pod that was made last; None if there is none."""
        if self._newest is None:
            pods = (member.pod for member in self.members.values())
            self._newest = max(pods, key=_created, default=None)

        return self._newest

    def pending(self) -> Iterator[WorkloadPod]:
        """Yield the pods that have no node."""
        return (member for member in self.members.values() if not member.node)

    def others(self, member: WorkloadPod, node: str, counts: RevisionCounts | None = None) -> int:
        """Return how many other pods have a place on the node, or may get one.

        Of all of them, or of those that are counted in `counts`, among which the pod is.
        """
        known = self.members.get(member.uid)
        held = (self.counts if counts is None else counts).held
        return held[node] - (known is not None and node in known.holds())

    def peers(self, revision: Revision) -> RevisionCounts:
        """Return the counts of the pods that are planned together with those of a revision.

        These are all but those of other revisions while the workload is rolled out; do not change.
        """
        if len(self.revisions) == 1 and revision in self.revisions:
            return self.counts

        known = {each: counts.latest for each, counts in self.revisions.items()}
        if not revisions.have_superseded({**known, revision: ""}):
            return self.counts

        found = RevisionCounts()
        for each in revisions.peers(revision, known):
            if counts := self.revisions.get(each):
                found.include(counts)

        return found

    def seats(self, shares: tuple[Share, ...]) -> Seats:
        """Return the order of the workload's seats for these shares; the last few are kept."""
        seats = self._seats.get(shares)
        if seats is None:
            seats = self._seats[shares] = Seats(shares, self.key)
            if len(self._seats) > _SEATS_KEPT:
                self._seats.popitem(last=False)
        else:
            self._seats.move_to_end(shares)

        return seats

    def put(self, pod: Object, assumed: Collection[str] = ()) -> bool:
        """Count a live pod, or its newer version; return True if others may go elsewhere now.

        That is so if its aim is free again, when a placeholder of it goes, and when the first pod
        of the workload is bound.
        """
        uid, node = objects.uid(pod), objects.node_name(pod)
        member = self.members.get(uid)
        if member is None:
            member = self.members[uid] = WorkloadPod(pod, uid, assumed=frozenset(assumed))
            freed = False
            self.deleted.note_new(pod)
        else:
            is_news = bool(node and not member.node)
            freed = is_news and (member.aim not in ("", node) or not self.bound)
            self._discount(member)

        waiting = placeholders.of(pod)
        freed |= not set(member.placeholders) <= {node, *waiting}
        member.take(pod)
        member.node, member.placeholders = node, waiting
        member.revision = revision_of(pod)
        if self._newest is not None and _created(pod) >= _created(self._newest):
            self._newest = pod

        member.since = None if node else unschedulable_since(pod)
        if node:
            member.aim, member.opened, member.assumed = "", (), frozenset()
            member.directed = ""
            self.waited.note_bound(node)

        self._add(member)
        return freed

    def end(self, pod: Object) -> bool:
        """Stop counting a pod that ends, but await the one of its name; return like `remove`."""
        freed = self.remove(objects.uid(pod))
        self.deleted.add(pod)
        return freed

    def remove(self, uid: str) -> bool:
        """Stop counting a pod; return True if a place that it was planned for is free again."""
        self.deleted.note_gone(uid)
        member = self.members.pop(uid, None)
        if member is None:
            return False

        if self._newest is not None and objects.uid(self._newest) == uid:
            self._newest = None

        self._discount(member)
        return bool(member.aim or member.placeholders)

    def assume(self, uid: str, nodes: Collection[str]) -> None:
        """Record the nodes that a pending pod is on its way to."""
        member = self.members.get(uid)
        if member is not None and not member.node:
            self._count(member, -1)
            member.assumed = frozenset(nodes)
            self._count(member, 1)

    def restore(self, candidates: Callable[[Object], Sequence[tuple[str, float]]]) -> None:
        """Give pods back the clusters where a former leader has made candidates of them, once."""
        if self._restored:
            return

        self._restored = True
        for member in tuple(self.pending()):
            if not member.aim and (waiting := candidates(member.pod)):
                self.plan(member, waiting[0][0], tuple(waiting[1:]))

    def weigh(self, weighting: Weighting) -> None:
        """Keep the shares by free capacity for the pods to come."""
        self._weighting = weighting

    def record(self, member: WorkloadPod, choice: ClusterChoice, now: float) -> None:
        """Record where a pending pod is to go; it counts there if it is a member."""
        for full in choice.full:
            self.waited.note_full(full, member.size, now)

        self.plan(member, choice.aim, choice.opened, choice.directed)

    def direct(self, node: str) -> None:
        """Have the next new pod go to a node: one was moved there."""
        self._directed[node] += 1

    def take_back(self, node: str) -> None:
        """Undo `direct`, if no new pod goes there yet."""
        if self._directed[node]:
            workload_pod.step(self._directed, node, -1)
        else:
            del self._directed[node]

    def end_directions(self, nodes: Iterable[str]) -> None:
        """Forget what was directed to these nodes: all moves to them are over."""
        for node in nodes:
            del self._directed[node]

    def head_for(self, node: str, reason: str) -> bool:
        """Have all pods of a workload that is kept together go to a node; tell if that is news."""
        if not node or self._destination == node:
            return False

        self._destination, self._moved_for = node, reason
        return True

    def end_move(self) -> None:
        """Have the pods of a workload that was moved as a whole go where its others are again."""
        self._destination = ""

    def plan(
        self,
        member: WorkloadPod,
        aim: str,
        opened: tuple[tuple[str, float], ...],
        directed: str = "",
    ) -> None:
        """Record the nodes of a pending pod; no effect on the counts if it is not a member."""
        if (member.aim, member.opened, member.directed) == (aim, opened, directed):
            return

        known = self.members.get(member.uid) is member
        if known:
            self._count(member, -1)

        for node, before in ((aim, member.aim), (directed, member.directed)):
            if node != before and node in self._directed:
                workload_pod.step(self._directed, node, -1)

        member.aim, member.opened, member.directed = aim, opened, directed
        if known:
            self._count(member, 1)

    def _add(self, member: WorkloadPod) -> None:
        created = objects.created(member.pod)
        of_revision = self.revisions.get(member.revision)
        if of_revision is None:
            of_revision = self.revisions[member.revision] = RevisionCounts()

        for counts in (self.counts, of_revision):
            counts.pods += 1
            counts.latest = max(counts.latest, created)

        self._count(member, 1)

    def _discount(self, member: WorkloadPod) -> None:
        """Undo `_add`."""
        self._count(member, -1)
        self.counts.pods -= 1
        self.revisions[member.revision].pods -= 1
        if not self.revisions[member.revision].pods:
            del self.revisions[member.revision]

    def _count(self, member: WorkloadPod, step: int) -> None:
        for counts in (self.counts, self.revisions[member.revision]):
            workload_pod.count(counts, member, step)

        self.waited.count(member, step)


def _created(pod: Object) -> tuple[str, str]:
    return objects.created(pod), objects.uid(pod)
