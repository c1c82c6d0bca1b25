"""Filter by placement policies: each pod goes where the plan of its workload wants one more.

Clusters that earlier Filter plugins reject, since they are cordoned, out of reach, at a quota or
not for such a pod, have no share in the plan: only for room does a pod wait, so NodeResourcesFit
comes after this plugin. It rejects all but the pod's planned cluster and those opened to it by
overflow, so scores only order these.

`vnode.scheduling.workload_counts` counts, `vnode.scheduling.placement.choosing` chooses; here is
what a cycle makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from scheduler_plugins import resources_fit
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.placement import choosing, placeholders, reasons
from vnode.scheduling.placement.choosing import Choice
from vnode.scheduling.placement.policy import Mode, Policy, by_capacity
from vnode.scheduling.placement.seats import MAX_WEIGHT, Share
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
from vnode.scheduling.workload import Member, Workload, unschedulable_since

_POLICIES_KEPT: Final = 1000  # whose shares are known; all are forgotten when there are more

_KnownShares: TypeAlias = tuple[Policy, tuple[Object, ...], tuple[Share, ...]]

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


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What PreFilter found out for one pod."""

    policy: Policy
    workload: Workload
    member: Member
    shares: Mapping[str, Share]
    home: str | None
    """Mode Single: the only node; "" if any will do, None if none will as yet."""
    choice: Choice | None
    """Modes with a plan: where the pod may go."""
    aim: str
    """What messages call the planned cluster."""
    waits: str
    """For messages: `; waiting for c1 until 2026-01-01T00:02:00Z`; of Single ` in c1`."""

    def of(self, node: str) -> Status:
        """Return the verdict on a node."""
        share, name = self.shares.get(node), self.policy.name
        if share is None:
            return status.unresolvable(f"didn't match {name}")

        if self.choice is not None and node in self.choice.nodes():
            return SUCCESS

        if share.maximum is not None and self.workload.others(self.member, node) >= share.maximum:
            return status.unschedulable(f"at its maximum of {share.maximum} by {name}{self.waits}")

        if self.home is None or (self.home and node != self.home):
            return status.unschedulable(
                f"{name} keeps the pods of {self.workload.key} together{self.waits}"
            )

        return SUCCESS if self.choice is None else self._elsewhere(share, self.choice)

    def reason(self, node: str) -> str:
        """Return why the pod has its place on the node."""
        share, policy = self.shares.get(node), self.policy
        if share is None:
            return ""

        if self.choice is not None:
            return reasons.planned(policy, share, self.choice, self.aim)

        if policy.mode is Mode.SINGLE:
            return reasons.together(policy, self.workload.key, is_first=not self.home)

        return reasons.scored(policy)

    def _elsewhere(self, share: Share, choice: Choice) -> Status:
        count = choice.planned.get(share.node, 0)
        by = reasons.by_weight(self.policy, share)
        return status.unschedulable(
            f"planned elsewhere by {self.policy.name}: {count} of {choice.replicas} here"
            f"{',' if by else ''}{by}{self.waits}"
        )


class PlacementPolicy(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin):
    """Plans by the first policy that is for the pod; pods without one are not looked at."""

    NAME = "PlacementPolicy"

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        # By namespace and name: the policy, the nodes as they were, and the shares of these.
        self._shares: dict[tuple[str, str], _KnownShares] = {}

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
            member = Member(pod, objects.uid(pod), since=unschedulable_since(pod))

        shares = self._shares_of(policy, snapshot)
        if policy.mode is Mode.SPREAD and policy.by_capacity:
            shares = _weighted(workload, shares, snapshot, state.requests(pod))

        by_node = {share.node: share for share in shares}
        home: str | None = ""
        choice, waits = None, ""
        if policy.mode is Mode.SINGLE:
            home = choosing.home(workload, member, by_node)
            waits = f" in {_shown(home, snapshot)}" if home else ": waiting for its first one"
        elif policy.mode is not Mode.ANY:
            able = self._able(state, pod, snapshot, by_node)
            choice = self._choose(state, policy, workload, member, able)
            waits = _waiting(choice, snapshot)

        aim = _shown(choice.aim, snapshot) if choice else ""
        verdict = _Verdict(policy, workload, member, by_node, home, choice, aim, waits)
        state.write(self.NAME, verdict)
        state.explain_place = verdict.reason
        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject nodes that are not the policy's, full by it, or not planned for the pod."""
        verdict: _Verdict = state.read(self.NAME)
        return verdict.of(node.name)

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Skip pods that have no order of clusters."""
        verdict: _Verdict | None = state.read(self.NAME)
        planned = verdict is not None and verdict.choice is not None and len(nodes) > 1
        return SUCCESS if planned else SKIP

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return less for each cluster of the pod that comes before the node."""
        verdict: _Verdict = state.read(self.NAME)
        assert verdict.choice is not None
        nodes = verdict.choice.nodes()
        return MAX_SCORE - MAX_SCORE * nodes.index(node.name) // len(nodes)

    def reserve(self, state: CycleState, pod: Object, node_name: str) -> Status:
        """Have the pod say where it was planned, if it goes elsewhere."""
        verdict: _Verdict | None = state.read(self.NAME)
        state.annotations.pop(keys.OVERFLOWED_FROM, None)
        aim = verdict.choice.aim if verdict is not None and verdict.choice is not None else ""
        if aim not in ("", node_name):
            state.annotations[keys.OVERFLOWED_FROM] = aim

        return SUCCESS

    def unreserve(self, state: CycleState, pod: Object, node_name: str) -> None:
        """Do nothing: only a binding writes."""

    def _shares_of(self, policy: Policy, snapshot: Snapshot) -> tuple[Share, ...]:
        """Return the shares of all nodes of the policy, made anew only when one has changed."""
        nodes = tuple(info.virtual.node for info in snapshot.nodes)
        key = policy.namespace, policy.name
        known = self._shares.get(key)
        if known is not None and known[0] is policy and _are_same(known[1], nodes):
            return known[2]

        shares = policy.shares(snapshot.nodes)
        if known is not None and known[2] == shares:
            shares = known[2]

        if len(self._shares) >= _POLICIES_KEPT:
            self._shares.clear()

        self._shares[key] = policy, nodes, shares
        return shares

    def _able(
        self, state: CycleState, pod: Object, snapshot: Snapshot, shares: Mapping[str, Share]
    ) -> tuple[Share, ...]:
        """Return the shares of the clusters that can take the pod, given room."""
        rejection = self.handle.filters[self.NAME]
        return tuple(
            shares[node.name]
            for node in snapshot.nodes
            if node.name in shares and rejection(state, pod, node) is None
        )

    def _choose(
        self,
        state: CycleState,
        policy: Policy,
        workload: Workload,
        member: Member,
        shares: tuple[Share, ...],
    ) -> Choice:
        """Choose the pod's clusters, record them, and have the pod tried again for the next one."""
        if not workload.restored:
            workload.restored = True
            for pending in tuple(workload.pending()):
                self._restore(workload, pending)

        clock = self.handle.clock
        now = clock.now().timestamp()
        choice = choosing.choose(workload, member, shares, policy.overflow, now)
        workload.plan(member, choice.aim, choice.opened)
        state.kept = frozenset(choice.nodes())
        if placeholders.keeps(policy):
            state.better = placeholders.better(choice, {share.node: share for share in shares})

        if choice.until is not None:
            state.retry_by(clock.monotonic() + choice.until - now)

        return choice

    def _restore(self, workload: Workload, member: Member) -> None:
        """Give a pod back the clusters where a former leader has made candidates of it."""
        waiting = self.handle.candidates(member.pod)
        if waiting and not member.aim:
            workload.plan(member, waiting[0][0], tuple(waiting[1:]))


def _weighted(
    workload: Workload, shares: tuple[Share, ...], snapshot: Snapshot, requests: Resources
) -> tuple[Share, ...]:
    """Weigh shares by how many pods of the workload each cluster has or can take.

    While pods have aims the weights stay: a burst is planned as one.
    """
    known = workload.weighted
    if known is not None and known[0] is shares and workload.aimed:
        return known[2]

    weights: dict[str, int] = {}
    for node in snapshot.nodes:
        if (free := resources_fit.free_of(node)) is not None:
            fits = min(free.get(name, 0) // amount for name, amount in requests.items() if amount)
            weights[node.name] = min(MAX_WEIGHT, max(0, fits) + workload.bound[node.name])

    # Some clusters do not say what they have free: take them for ordinary ones.
    usual = max(1, sum(weights.values()) // len(weights)) if weights else 1
    weights = {share.node: weights.get(share.node, usual) for share in shares}
    weighted = tuple(by_capacity(share, weights[share.node]) for share in shares)
    workload.weighted = shares, weights, weighted
    return weighted


def _waiting(choice: Choice, snapshot: Snapshot) -> str:
    """Tell in words what a pod that is not bound yet waits for."""
    names = [_shown(node, snapshot) for node in choice.nodes()]
    if not names:
        return ""

    until = ""
    if choice.until is not None:
        until = f" until {objects.timestamp(datetime.fromtimestamp(choice.until, UTC))}"

    return f"; waiting for {', '.join(names)}{until}"


def _shown(node: str, snapshot: Snapshot) -> str:
    """Return the name of the node's target, if it is there."""
    info = snapshot.get(node)
    return info.virtual.target[1] if info else node


def _are_same(left: tuple[Object, ...], right: tuple[Object, ...]) -> bool:
    """Tell whether they are the very same objects, which nobody changes."""
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
