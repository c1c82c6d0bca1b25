"""Filter by placement policies: each pod goes where the plan of its workload wants one more.

Clusters that earlier Filter plugins reject, since they are cordoned, out of reach, at a quota or
not for such a pod, have no share in the plan: only for room does a pod wait, so NodeResourcesFit
comes after this plugin. It rejects all but the pod's planned cluster and those opened to it by
overflow, so scores only order these.

`vnode.planning.workload_counts` counts, `vnode.planning.choosing` chooses; here is
what a cycle makes of it. `placement_verdict` says what comes of that for each node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from scheduler_plugins import placement_shares
from scheduler_plugins.placement_shares import KnownShares
from scheduler_plugins.placement_verdict import PlacementVerdict, shown, waiting
from scheduler_plugins.target_health import TargetHealth
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.planning import choosing, placeholders, unfinished_move
from vnode.planning.choosing import ClusterChoice
from vnode.planning.policy import Mode, Policy
from vnode.planning.seats import Share
from vnode.planning.workload import Workload, WorkloadPod, unschedulable_since
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import (
    MAX_SCORE,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status

_KINDS: Final = (
    EventKind.NODE_ADD,
    EventKind.NODE_LABELS,
    EventKind.NODE_TAINTS,
    EventKind.TARGET_HEALTH,
    EventKind.TARGET_LOST,
    EventKind.TARGET_CHANGED,
    EventKind.POD_DELETE,
    EventKind.PLAN_FREED,
    EventKind.POLICY_CHANGED,
)


class PlacementPolicy(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin):
    """Plans by the first policy that is for the pod; pods without one are not looked at."""

    NAME = "PlacementPolicy"

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._shares = KnownShares()

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which the plan, or what is counted, may change for any node."""
        return [ClusterEventWithHint(kind, anywhere=True) for kind in _KINDS]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Choose the pod's clusters by its policy; skip it if it has none."""
        policies = self.handle.policies
        policy = policies.of(pod) if policies else None
        if policy is None:
            return SKIP

        workload = snapshot.workloads.of(pod, policy.group_by)
        member = workload.members.get(objects.uid(pod))
        if member is None:
            member = WorkloadPod(pod, objects.uid(pod), since=unschedulable_since(pod))

        shares = self._shares.of(policy, snapshot)
        if policy.mode is Mode.SPREAD and policy.by_capacity:
            shares = placement_shares.weighted(workload, shares, snapshot, state.requests(pod))

        by_node = {share.node: share for share in shares}
        home: str | None = ""
        choice, waits = None, ""
        if policy.mode is Mode.SINGLE:
            home = choosing.home(workload, member, by_node)
            waits = f" in {shown(home, snapshot)}" if home else ": waiting for its first one"
        elif policy.mode is not Mode.ANY:
            able = self._able(state, pod, snapshot, by_node)
            choice = self._choose(state, policy, workload, member, able)
            waits = waiting(choice, snapshot)

        aim = shown(choice.aim, snapshot) if choice else ""
        verdict = PlacementVerdict(policy, workload, member, by_node, home, choice, aim, waits)
        state.write(self.NAME, verdict)
        state.explain_place = verdict.reason
        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject nodes that are not the policy's, full by it, or not planned for the pod."""
        verdict: PlacementVerdict = state.read(self.NAME)
        if node.name not in verdict.shares and (why := verdict.policy.rejects(node)):
            return status.unresolvable(f"{verdict.policy.name}: {why}")

        return verdict.of(node.name)

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Skip pods that have no order of clusters."""
        verdict: PlacementVerdict | None = state.read(self.NAME)
        planned = verdict is not None and verdict.choice is not None and len(nodes) > 1
        return SUCCESS if planned else SKIP

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return less for each cluster of the pod that comes before the node."""
        verdict: PlacementVerdict = state.read(self.NAME)
        assert verdict.choice is not None
        nodes = verdict.choice.nodes()
        return MAX_SCORE - MAX_SCORE * nodes.index(node.name) // len(nodes)

    def reserve(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Have the pod say where it was planned, if it goes elsewhere, or why all move there."""
        verdict: PlacementVerdict | None = state.read(self.NAME)
        for key in (keys.OVERFLOWED_FROM, keys.MOVED_TOGETHER):
            state.annotations.pop(key, None)

        aim = verdict.choice.aim if verdict is not None and verdict.choice is not None else ""
        if aim not in ("", node_name):
            state.annotations[keys.OVERFLOWED_FROM] = aim

        if verdict is not None and verdict.policy.mode is Mode.SINGLE:
            why = unfinished_move.mark(verdict.workload, node_name)
            state.annotations |= {keys.MOVED_TOGETHER: why} if why else {}

        return SUCCESS

    def unreserve(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Do nothing: only a binding writes."""

    def _able(
        self, state: CycleState, pod: Object, snapshot: Snapshot, shares: Mapping[str, Share]
    ) -> tuple[Share, ...]:
        """Return the shares of the clusters that can take the pod, given room.

        Those that are being connected keep their shares: when an agent starts, plans are not to go
        by which target answers first.
        """
        rejection = self.handle.filters[self.NAME]

        def is_able(node: VirtualNodeInfo) -> bool:
            found = rejection(state, pod, node)
            is_waited_for = node.virtual.connecting and found is not None
            return found is None or (is_waited_for and found.plugin == TargetHealth.NAME)

        return tuple(
            shares[node.name] for node in snapshot.nodes if node.name in shares and is_able(node)
        )

    def _choose(
        self,
        state: CycleState,
        policy: Policy,
        workload: Workload,
        member: WorkloadPod,
        shares: tuple[Share, ...],
    ) -> ClusterChoice:
        """Choose the pod's clusters, record them, and have the pod tried again for the next one."""
        if not workload.restored:
            workload.restored = True
            for pending in tuple(workload.pending()):
                self._restore(workload, pending)

        clock = self.handle.clock
        now = clock.now().timestamp()
        choice = choosing.choose(workload, member, shares, policy.overflow, now)
        workload.plan(member, choice.aim, choice.opened, choice.directed)
        state.kept = frozenset(choice.nodes())
        if placeholders.keeps(policy):
            state.better = placeholders.better(choice, {share.node: share for share in shares})

        if choice.until is not None:
            state.opens_more = True
            state.retry_by(clock.monotonic() + choice.until - now)

        return choice

    def _restore(self, workload: Workload, member: WorkloadPod) -> None:
        """Give a pod back the clusters where a former leader has made candidates of it."""
        waiting = self.handle.candidates(member.pod)
        if waiting and not member.aim:
            workload.plan(member, waiting[0][0], tuple(waiting[1:]))
