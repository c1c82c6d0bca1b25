"""A workload that is kept together moves to one cluster that has room for all, or stays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from vnode.planning.move_policy import STARTING
from vnode.planning.move_reasons import DRAIN, REBALANCE, MoveReason
from vnode.planning.move_state import PlannedEviction, Replica, WorkloadState
from vnode.planning.moving_together import decide_together
from vnode.planning.seats import Seats, Share

NODES = ("a", "b", "c")
PLACES = (*NODES, "out")


@st.composite
def workload_states(draw: st.DrawFn) -> tuple[WorkloadState, MoveReason]:
    reason = draw(st.sampled_from((DRAIN, REBALANCE)))
    caps = draw(st.dictionaries(st.sampled_from(NODES), st.integers(0, 5)))
    caps = caps if reason is DRAIN else {}
    able = draw(st.lists(st.sampled_from(NODES), unique=True))
    shares = [Share(node, maximum=caps.get(node)) for node in able]
    replicas = tuple(
        Replica(
            f"p{number}",
            node,
            bound=bool(node),
            ready=bool(node) and draw(st.integers(0, 5)) > 0,
            age=draw(st.sampled_from((0.0, 2 * STARTING))),
            waiting=not node and draw(st.booleans()),
            movable=draw(st.integers(0, 9)) > 0,
        )
        for number, node in enumerate(draw(st.lists(st.sampled_from(("", *PLACES)), max_size=8)))
    )
    room = draw(st.dictionaries(st.sampled_from(able), st.integers(0, 12))) if able else {}
    now = WorkloadState(
        replicas=replicas,
        seats=Seats(shares, "w"),
        included=frozenset(NODES),
        room=room,
        limit=draw(st.integers(1, 4)),
        unreplaced=draw(st.integers(0, 2)),
        caps=caps,
    )
    return now, reason


def after(now: WorkloadState, evictions: tuple[PlannedEviction, ...]) -> WorkloadState:
    """Return the situation once the pods of these steps are ready where they were to go.

    Pods that waited are tried again, and none has waited there for long.
    """
    targets = {eviction.uid: eviction.target for eviction in evictions}
    replicas = tuple(
        r._replace(uid=f"{r.uid}+", node=targets[r.uid], ready=True)
        if r.uid in targets
        else r._replace(waiting=False)
        for r in now.replicas
    )
    room = Counter(now.room)
    room.subtract(targets.values())
    goal = next(iter(targets.values()), now.destination)
    return replace(now, replicas=replicas, room=room, destination=goal, unreplaced=0)


@given(workload_states())
def test_all_go_to_one_cluster_that_has_room_for_all(
    given: tuple[WorkloadState, MoveReason],
) -> None:
    now, reason = given
    decision = decide_together(now, reason)
    assert decision == decide_together(now, reason)
    if not decision.evictions:
        return

    [goal] = {eviction.target for eviction in decision.evictions}
    elsewhere = [r for r in now.replicas if r.node != goal]
    assert len(elsewhere) <= now.room[goal]
    assert all(replica.movable for replica in elsewhere if replica.bound)
    assert now.caps.get(goal, len(now.replicas)) >= len(now.replicas)
    assert len(decision.evictions) <= now.limit - now.unreplaced
    assert len({eviction.uid for eviction in decision.evictions}) == len(decision.evictions)
    assert decision.left + len(decision.evictions) == sum(r.bound for r in elsewhere)


@given(workload_states())
def test_what_has_begun_ends_with_all_in_one_place(given: tuple[WorkloadState, MoveReason]) -> None:
    now, reason = given
    evictions = decide_together(now, reason).evictions
    if not evictions:
        return

    goal = evictions[0].target
    for _ in now.replicas:
        now = after(now, evictions)
        now = replace(now, replicas=tuple(r._replace(age=2 * STARTING) for r in now.replicas))
        evictions = decide_together(now, reason).evictions
        assert all(eviction.target == goal for eviction in evictions)

    assert not evictions
    assert {replica.node for replica in now.replicas if replica.bound} == {goal}
    assert not decide_together(replace(now, destination=""), DRAIN).evictions


@given(workload_states())
def test_what_is_together_and_may_stay_is_left_alone(
    given: tuple[WorkloadState, MoveReason],
) -> None:
    now, reason = given
    there = {replica.node for replica in now.replicas if replica.bound}
    may_stay = len(there) <= 1 and there <= now.included and there.isdisjoint(now.caps)
    if may_stay and not any(replica.waiting for replica in now.replicas):
        decision = decide_together(now, reason)
        assert (decision.evictions, decision.left) == ((), 0)


@given(workload_states())
def test_pods_that_stay_although_they_should_not_have_a_reason(
    given: tuple[WorkloadState, MoveReason],
) -> None:
    decision = decide_together(*given)
    assert bool(decision.why) == bool(decision.left)
    assert not decision.is_stuck or decision.left


def test_pods_that_wait_go_before_others_and_count_as_being_moved() -> None:
    young = tuple(Replica(f"w{n}", "", bound=False, ready=False, waiting=True) for n in range(2))
    bound = tuple(Replica(f"p{n}", "a") for n in range(3))
    now = WorkloadState(
        replicas=(*young, *bound),
        seats=Seats([Share("a", maximum=0), Share("b")], "w"),
        included=frozenset(NODES),
        room={"b": 9},
        limit=2,
        caps={"a": 0},
    )
    decision = decide_together(now, DRAIN)
    assert (decision.evictions, decision.left, decision.destination) == ((), 3, "b")
    assert decision.why == "2 of its pods are being moved or not ready"

    old = tuple(each._replace(age=STARTING) for each in young)
    assert len(decide_together(replace(now, replicas=(*old, *bound)), DRAIN).evictions) == 2


@given(workload_states())
def test_the_first_step_is_the_same_if_only_one_is_asked_for(
    given: tuple[WorkloadState, MoveReason],
) -> None:
    now, reason = given
    one, every = decide_together(now, reason, 1), decide_together(now, reason)
    assert (one.evictions, one.destination) == (every.evictions[:1], every.destination)
