"""Filter by placement policies: each pod goes where the plan of its workload wants one more.

Clusters that other Filter plugins reject, since they are cordoned, out of reach, at a quota or not
for such a pod, have no share in the plan: a pod waits for room only, and for answers. This plugin
rejects all but the pod's planned cluster and those opened to it by overflow, so scores only order
these.

`vnode.planning.workload_counts` counts, `vnode.planning.choosing` chooses; here is
what a cycle makes of it. `placement_verdict` says what comes of that for each node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from scheduler_plugins import placement_shares
from scheduler_plugins.placement_shares import KnownShares
from scheduler_plugins.placement_verdict import PlacementVerdict, waiting
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.planning import choosing, placeholders, unfinished_move
from vnode.planning.seats import Share
from vnode.planning.weighing import Weighting
from vnode.planning.workload_pod import WorkloadPod, unschedulable_since
from vnode.scheduling import events, status
from vnode.scheduling.cycle import UNPLANNED, CycleState, PlanOutcome
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import (
    MAX_SCORE,
    Handle,
    PlanPlugin,
    PreScorePlugin,
    Rejection,
    ScorePlugin,
)
from vnode.scheduling.rooms import rooms
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status

_KINDS: Final = (
    EventKind.NODE_ADD,
    EventKind.NODE_LABELS,
    EventKind.NODE_TAINTS,
    EventKind.TARGET_HEALTH,
    EventKind.TARGET_LOST,
    EventKind.TARGET_CHANGED,
    EventKind.PLAN_FREED,
    EventKind.POLICY_CHANGED,
)
_OF_ITS_WORKLOAD: Final = ClusterEventWithHint(
    EventKind.POD_DELETE, anywhere=True, scope=events.own_namespace
)


class PlacementPolicy(PlanPlugin, PreScorePlugin, ScorePlugin):
    """Plans by the first policy that is for the pod; pods without one are not looked at."""

    NAME = "PlacementPolicy"

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._shares = KnownShares()

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which the plan, or what is counted, may change for any node."""
        return [*events.anywhere(*_KINDS), _OF_ITS_WORKLOAD]

    def restore(self, pod: Object, snapshot: Snapshot) -> None:
        """Give the pods of the workload the clusters back that they had before this process."""
        policy = self.handle.policies.of(pod)
        if policy is not None and policy.is_divided:
            snapshot.workloads.of(pod, policy.group_by).restore(self.handle.candidates)

    def plan(
        self, state: CycleState, pod: Object, snapshot: Snapshot, rejection: Rejection
    ) -> tuple[Status, PlanOutcome]:
        """Choose the pod's clusters by its policy; skip it if it has none."""
        policy = self.handle.policies.of(pod)
        if policy is None:
            return SKIP, UNPLANNED

        workload = snapshot.workloads.of(pod, policy.group_by)
        member = workload.members.get(objects.uid(pod))
        if member is None:
            member = WorkloadPod(pod, objects.uid(pod), since=unschedulable_since(pod))

        shares, weighting = self._shares.of(policy, snapshot), None
        if policy.by_capacity:
            weighting = placement_shares.weighting(
                workload,
                shares,
                lambda: rooms(pod, state.requests(pod), snapshot.nodes, self.handle),
            )
            shares = weighting.shares

        by_node = {share.node: share for share in shares}
        home: str | None = ""
        choice, waits, now = None, "", self.handle.clock.now().timestamp()
        if policy.is_together:
            home = choosing.home(workload, member, by_node, self._gang(member.uid), state.reserved)
            waits = f" in {snapshot.target_name(home)}" if home else ": waiting for its first one"
        elif policy.has_plan:
            able = _able(snapshot, by_node, rejection)
            choice = choosing.choose(workload, member, able, policy.overflow, now)
            waits = waiting(choice, snapshot)
            if choice.until is not None:
                state.retry_by(self.handle.clock.monotonic() + choice.until - now)

        aim = snapshot.target_name(choice.aim) if choice else ""
        verdict = PlacementVerdict(policy, workload, member, by_node, home, choice, aim, waits)
        state.write(self.NAME, verdict)
        return SUCCESS, _outcome(verdict, weighting, now)

    def _gang(self, uid: str) -> Collection[str]:
        """Return the UIDs of the pods that start together with one, if any do."""
        gangs = self.handle.gangs
        gang = gangs.of(uid) if gangs else None
        return gang.members.keys() if gang is not None else ()

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


def _able(
    snapshot: Snapshot, shares: Mapping[str, Share], rejection: Rejection
) -> tuple[Share, ...]:
    """Return the shares of the clusters that can take the pod, given room and answers."""
    found = ((shares.get(node.name), rejection(node)) for node in snapshot.nodes)
    return tuple(
        share for share, why in found if share is not None and (why is None or why.is_pending)
    )


def _outcome(verdict: PlacementVerdict, weighting: Weighting | None, now: float) -> PlanOutcome:
    """Return what comes of a verdict beside what Filter and Score make of it."""
    workload, member, choice = verdict.workload, verdict.member, verdict.choice

    def record() -> None:
        if weighting is not None:
            workload.weigh(weighting)

        if choice is not None:
            workload.record(member, choice, now)

    def annotations(node: str) -> dict[str, str]:
        if choice is not None:
            is_planned = choice.aim in ("", node)
            return {} if is_planned else {keys.OVERFLOWED_FROM: choice.aim}

        why = unfinished_move.mark(workload, node) if verdict.policy.is_together else ""
        return {keys.MOVED_TOGETHER: why} if why else {}

    if choice is None:
        return PlanOutcome(explain=verdict.reason, annotations=annotations, record=record)

    return PlanOutcome(
        kept=frozenset(choice.nodes()),
        better=placeholders.better(choice, verdict.shares)
        if placeholders.keeps(verdict.policy)
        else {},
        opens_more=choice.until is not None,
        explain=verdict.reason,
        annotations=annotations,
        record=record,
    )
