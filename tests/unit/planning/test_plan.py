"""All who plan a workload come to the same numbers, however they count it."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.planning.test_workload_counts import pod
from tests.unit.scheduling import costs
from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey
from vnode.placement.status import accounts, counting
from vnode.placement.status.counting import WorkloadCounts
from vnode.planning import choosing, deletion_cost, moving, plan
from vnode.planning.deletion_cost import PlacedPod
from vnode.planning.move_reasons import REBALANCE, RESCHEDULE
from vnode.planning.move_state import Replica, WorkloadState
from vnode.planning.policy import Clusters, Mode, Overflow, PlacementTarget, Policy
from vnode.planning.policy_node import PlannedNode
from vnode.planning.revisions import Revision, RevisionCounts
from vnode.planning.seats import Seats, Share
from vnode.planning.workload import Workload
from vnode.planning.workload_key import workload_of
from vnode.planning.workload_pod import WorkloadPod

NAMES = "abcd"


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    entries = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)):
        maximum = draw(st.none() | st.integers(0, 6))
        minimum = draw(st.integers(0, 2 if maximum is None else min(2, maximum)))
        clusters = Clusters(names=frozenset((name,)))
        weight, tier = draw(st.integers(0, 5)), draw(st.integers(0, 1))
        entries.append(PlacementTarget(clusters, weight, tier, minimum, maximum))

    mode = draw(st.sampled_from([Mode.SPREAD, Mode.FILL]))
    return Policy("placementpolicy/web", "default", None, mode=mode, targets=tuple(entries))


def nodes(cordoned: frozenset[str] = frozenset()) -> list[PlannedNode]:
    return [PlannedNode(name, {}, takes_pods=name not in cordoned) for name in NAMES]


def replica(uid: str, node: str = "") -> Object:
    """Return a pod of a ReplicaSet."""
    made = pod(uid, node=node)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web-1"}
    made["metadata"]["ownerReferences"][0] |= owner
    return made


def pods_on(places: list[str]) -> list[Object]:
    return [replica(f"p{number}", node) for number, node in enumerate(places)]


PLACES = st.lists(st.sampled_from(NAMES), max_size=12)
CORDONED = st.frozensets(st.sampled_from(NAMES), max_size=2)


@given(policies(), PLACES, CORDONED)
def test_the_status_says_what_scheduling_will_do_with_the_next_pod(
    policy: Policy, places: list[str], cordoned: frozenset[str]
) -> None:
    there = pods_on(places)
    new = replica("new")
    workload = Workload(workload_of(new))
    for each in (*there, new):
        workload.put(each)

    able = tuple(s for s in policy.shares(nodes()) if s.node not in cordoned)
    member = workload.members["new"]
    choice = choosing.choose(workload, member, able, Overflow(60, 3), 0.0)

    counts = WorkloadCounts()
    for each in (*there, new):
        counts.set(objects.key(each), counting.counted(each, lambda _: policy))

    tally = counts.of(policy.key)[workload.key]
    found = accounts.account(policy, workload.key, tally, nodes(cordoned))
    planned = {each.cluster: each.planned for each in found.targets if each.planned}
    stays = {n: c for n, c in Counter(places).items() if n in cordoned and _is_in(policy, n)}
    assert planned == {**choice.planned, **stays}
    assert found.unplaced == choice.replicas - sum(choice.planned.values())


def _is_in(policy: Policy, node: str) -> bool:
    return node in {share.node for share in policy.shares(nodes())}


def _settled(policy: Policy, replicas: int) -> tuple[Workload, list[str]]:
    """Return a workload whose pods came one by one, each where it was planned."""
    workload = Workload(workload_of(replica("p0")))
    shares = policy.shares(nodes())
    places = []
    for number in range(replicas):
        uid = f"p{number}"
        workload.put(replica(uid))
        choice = choosing.choose(workload, workload.members[uid], shares, Overflow(60, 3), 0.0)
        if choice.aim:
            workload.put(replica(uid, choice.aim))
            places.append(choice.aim)
        else:
            workload.remove(uid)

    return workload, places


@given(policies(), st.integers(0, 12))
def test_what_came_as_planned_is_neither_moved_nor_too_many_anywhere(
    policy: Policy, replicas: int
) -> None:
    workload, places = _settled(policy, replicas)
    shares = policy.shares(nodes())
    seats = workload.seats(shares)
    made = plan.of_revisions(seats, workload.revisions)
    assert dict(Counter(places)) == dict(made.planned)
    assert all(made.gap(name) == 0 for name in NAMES)
    state = WorkloadState(
        replicas=tuple(_replica(member) for member in workload.members.values()),
        seats=seats,
        included=frozenset(share.node for share in shares),
        room=dict.fromkeys(NAMES, 100),
        limit=100,
    )
    for reason in (REBALANCE, RESCHEDULE):
        decision = moving.decide(state, reason)
        assert (decision.evictions, decision.left) == ((), 0)


@given(policies(), st.integers(0, 12), st.integers(0, 12))
def test_what_shrinks_by_cost_is_what_would_have_been_planned(
    policy: Policy, replicas: int, left: int
) -> None:
    workload, _ = _settled(policy, replicas)
    seats = workload.seats(policy.shares(nodes()))
    placed = [
        PlacedPod(uid, member.node, member.revision, uid)
        for uid, member in workload.members.items()
    ]
    costs = deletion_cost.costs(placed, seats)
    kept = sorted(costs, key=lambda uid: -costs[uid])[:left]
    there = Counter(workload.members[uid].node for uid in kept)
    assert there == Counter(seats.plan(min(left, len(workload.members))).planned)


def _replica(member: WorkloadPod) -> Replica:
    return Replica(member.uid, member.node, revision=member.revision)


def test_many_revisions_cost_what_each_of_these_does() -> None:
    def cost(count: int) -> int:
        counts = {
            Revision(f"d{n // 2}", OwnerKey(f"r{n}")): RevisionCounts(1, f"{n:09}", Counter(a=1))
            for n in range(count)
        }
        seats = Seats((Share("a"), Share("b")), "label/default/web")
        return costs.bytecodes(lambda: plan.of_revisions(seats, counts))

    assert cost(160) < 5 * cost(40)
