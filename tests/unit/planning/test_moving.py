"""Moves bring a workload closer to its plan, a few pods at a time, and end there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scheduling import costs
from vnode.api.owners import OwnerKey
from vnode.planning.move_policy import STARTING
from vnode.planning.move_reasons import DRAIN, FAILBACK, REASONS, REBALANCE, RESCHEDULE, MoveReason
from vnode.planning.move_state import Decision, PlannedEviction, Replica, WorkloadState
from vnode.planning.moving import decide
from vnode.planning.revisions import Revision
from vnode.planning.seats import Seats, Share

NODES = ("a", "b", "c", "d")
OUTSIDE = "out"
"""Has pods of the workload, and is no cluster of its policy."""
AWAY = "away"
"""A cluster of the policy that takes no pods now."""


def placed(counts: Mapping[str, int], **fields: Any) -> tuple[Replica, ...]:
    return tuple(
        Replica(f"{node}{number}", node, overflowed=fields.pop("overflowed", True), **fields)
        for node, count in counts.items()
        for number in range(count)
    )


def workload_state(
    shares: list[Share], replicas: tuple[Replica, ...], **fields: object
) -> WorkloadState:
    made = WorkloadState(
        replicas=replicas,
        seats=Seats(shares, "w"),
        included=frozenset({AWAY, *(share.node for share in shares)}),
        room={share.node: 1000 for share in shares},
    )
    return replace(made, **fields)  # type: ignore[arg-type]


@st.composite
def shares_of(draw: st.DrawFn) -> list[Share]:
    found = []
    for node in draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=4, unique=True)):
        minimum = draw(st.integers(0, 3))
        maximum = draw(st.none() | st.integers(minimum, 12))
        tier, weight = draw(st.integers(0, 2)), draw(st.integers(0, 5))
        found.append(Share(node, weight, tier, minimum, maximum))

    return found


@st.composite
def workload_states(draw: st.DrawFn) -> tuple[WorkloadState, MoveReason]:
    shares = draw(shares_of())
    places = st.sampled_from((*NODES, OUTSIDE, AWAY))
    replicas = []
    for number in range(draw(st.integers(0, 25))):
        node, bound = draw(places), draw(st.integers(0, 9)) > 0
        replicas.append(
            Replica(
                f"p{number}",
                node,
                bound=bound,
                ready=bound and draw(st.integers(0, 9)) > 0,
                age=draw(st.sampled_from((0.0, 2 * STARTING))),
                movable=draw(st.integers(0, 4)) > 0,
                overflowed=draw(st.booleans()),
            )
        )

    reason = draw(st.sampled_from(REASONS))
    caps = draw(st.dictionaries(places, st.integers(0, 5))) if reason is DRAIN else {}
    shares = [share.capped(caps[share.node]) if share.node in caps else share for share in shares]
    now = workload_state(
        shares,
        tuple(replicas),
        room=draw(st.dictionaries(st.sampled_from(NODES), st.integers(0, 30))),
        limit=draw(st.integers(1, 5)),
        under_way=draw(st.integers(0, 3)),
        unreplaced=draw(st.integers(0, 2)),
        missing=draw(st.dictionaries(st.sampled_from(NODES), st.integers(1, 2), max_size=2)),
        caps=caps,
    )
    return now, reason


def after(now: WorkloadState, evictions: tuple[PlannedEviction, ...]) -> WorkloadState:
    """Return the situation once the pods of these steps are replaced where they were to go."""
    targets = {eviction.uid: eviction.target for eviction in evictions}
    counted = Counter(r.node for r in now.replicas)
    planned = now.seats.plan(len(now.replicas)).planned
    replicas = tuple(
        r._replace(
            uid=f"{r.uid}+",
            node=targets[r.uid],
            ready=True,
            overflowed=counted[targets[r.uid]] >= planned.get(targets[r.uid], 0),
        )
        if r.uid in targets
        else r
        for r in now.replicas
    )
    room = Counter(now.room) - Counter(targets.values())
    return replace(now, replicas=replicas, room=room)


def there(now: WorkloadState) -> Counter[str]:
    return Counter(r.node for r in now.replicas if r.bound)


@given(workload_states())
def test_no_more_are_moved_at_once_than_the_limit_and_none_twice(
    given: tuple[WorkloadState, MoveReason],
) -> None:
    now, reason = given
    evictions = decide(now, reason).evictions
    busy = now.unreplaced + sum(not r.ready and r.age < STARTING for r in now.replicas)
    assert len(evictions) <= max(0, now.limit - max(now.under_way, busy))
    assert len({eviction.uid for eviction in evictions}) == len(evictions)
    movable = {r.uid: r.node for r in now.replicas if r.bound and r.movable}
    assert all(movable[eviction.uid] == eviction.source for eviction in evictions)
    assert decide(now, reason) == decide(now, reason)


@given(workload_states())
def test_pods_go_only_where_there_is_room_and_a_gap(
    given: tuple[WorkloadState, MoveReason],
) -> None:
    now, reason = given
    evictions = decide(now, reason).evictions
    going = Counter(eviction.target for eviction in evictions)
    assert all(count <= now.room.get(node, 0) for node, count in going.items())
    counted = Counter(r.node for r in now.replicas) + Counter(now.missing) + going
    most = now.seats.plan(len(now.replicas) + sum(now.missing.values())).planned
    shares = {share.node: share for share in now.seats.ranked}
    for eviction in evictions:
        assert eviction.source != eviction.target
        assert eviction.there > eviction.planned
        target = shares[eviction.target]
        if counted[target.node] > most.get(target.node, 0):  # no gap: it goes up a tier
            assert reason is FAILBACK
            assert target.tier > shares[eviction.source].tier
            assert target.weight > 0
            assert target.maximum is None or counted[target.node] <= target.maximum


@given(workload_states())
def test_no_cluster_falls_below_its_minimum(given: tuple[WorkloadState, MoveReason]) -> None:
    now, reason = given
    before, then = there(now), there(after(now, decide(now, reason).evictions))
    planned_at_least = len(now.replicas) - before[AWAY] - before[OUTSIDE]
    minimums = {share.node: share.minimum for share in now.seats.ranked}
    away = sum(n for node, n in before.items() if node not in minimums) - sum(
        n for node, n in before.items() if node in (AWAY, OUTSIDE)
    )
    if planned_at_least - away >= sum(minimums.values()):
        for node, minimum in minimums.items():
            assert then[node] >= min(minimum, before[node])


@given(workload_states())
def test_moves_end_and_then_nothing_moves(given: tuple[WorkloadState, MoveReason]) -> None:
    now, reason = given
    now = replace(now, under_way=0, unreplaced=0, missing={})
    settled = tuple(r._replace(ready=True) if r.bound else r for r in now.replicas)
    now = replace(now, replicas=tuple(r for r in settled if r.bound))
    for _ in range(len(now.replicas) + 1):
        decision = decide(now, reason)
        if not decision.evictions:
            break

        now = after(now, decision.evictions)
    else:
        raise AssertionError("it goes on for ever")

    # The same reason that has ended moves nothing, and a failback by itself undoes nothing.
    assert not decide(now, reason).evictions
    if not decision.left and reason is REBALANCE:
        assert not decide(now, FAILBACK).evictions
        assert not decide(now, RESCHEDULE).evictions


@given(shares_of(), st.integers(0, 40), st.sampled_from(REASONS))
def test_what_runs_as_planned_stays(shares: list[Share], replicas: int, reason: MoveReason) -> None:
    counts = Seats(shares, "w").plan(replicas).planned
    now = workload_state(shares, placed(counts), limit=10)
    assert decide(now, reason) == Decision()


THREE = [Share("a", 40, minimum=2), Share("b", 40, minimum=2), Share("c", 20, minimum=2)]


def moves(decision: Decision) -> list[tuple[str, str]]:
    return [(eviction.source, eviction.target) for eviction in decision.evictions]


def test_the_largest_gap_with_room_is_filled_first() -> None:
    now = workload_state(THREE, placed({"a": 5, "b": 6, "c": 9}), limit=3)
    assert moves(decide(now, FAILBACK)) == [("c", "a"), ("c", "a"), ("c", "b")] or moves(
        decide(now, FAILBACK)
    ) == [("c", "a"), ("c", "b"), ("c", "a")]
    full = replace(now, room={"b": 1})
    assert moves(decide(full, FAILBACK)) == [("c", "b")]
    assert decide(full, FAILBACK).evictions[0] == PlannedEviction("c8", "c", "b", 9, 4, 20)


def test_it_says_why_nothing_moves() -> None:
    now = workload_state(THREE, placed({"a": 6, "b": 6, "c": 8}))
    assert decide(replace(now, room={}), FAILBACK) == Decision(
        (), 4, "no room", ("a", "b"), is_stuck=True
    )
    waits = decide(replace(now, under_way=1), FAILBACK)
    assert waits == Decision((), 4, "1 of its pods are being moved or not ready")
    drained = [*THREE[:2], THREE[2].capped(0)]
    capped = [replace(share, maximum=6) for share in drained]
    stuck = workload_state(capped, placed({"a": 6, "b": 6, "c": 8}), caps={"c": 0})
    assert decide(stuck, DRAIN) == Decision(
        (), 8, "the plan has no place for them in other clusters", is_stuck=True
    )


def test_a_drain_leaves_what_it_allows() -> None:
    shares = [*THREE[:2], THREE[2].capped(1)]
    now = workload_state(shares, placed({"a": 8, "b": 8, "c": 4}), caps={"c": 1}, limit=10)
    assert Counter(moves(decide(now, DRAIN))) in (
        Counter({("c", "a"): 2, ("c", "b"): 1}),
        Counter({("c", "a"): 1, ("c", "b"): 2}),
    )


def test_only_who_asks_for_it_moves_pods_out_of_clusters_without_a_share() -> None:
    now = workload_state(THREE, placed({"a": 3, "b": 3, "c": 2, OUTSIDE: 2, AWAY: 2}), limit=9)
    assert decide(now, FAILBACK).evictions == ()
    assert sorted(moves(decide(now, REBALANCE))) == [(OUTSIDE, "a"), (OUTSIDE, "b")]
    drained = replace(now, caps={AWAY: 0})
    assert sorted(moves(decide(drained, DRAIN))) == [(AWAY, "a"), (AWAY, "b")]


FILL = [Share("a", tier=3), Share("b", tier=2), Share("c", tier=1)]


def test_pods_that_overflowed_go_up_where_the_plan_has_no_gap() -> None:
    now = workload_state(FILL, placed({"a": 2, "b": 2, "c": 4}), limit=9)
    assert moves(decide(replace(now, room={"b": 2}), FAILBACK)) == [("c", "b")] * 2
    both = decide(replace(now, room={"a": 1, "b": 1}), FAILBACK)
    assert moves(both) == [("c", "a"), ("c", "b")]
    assert not decide(replace(now, room={"c": 9}), FAILBACK).evictions
    for reason in (REBALANCE, RESCHEDULE):
        assert not decide(replace(now, room={"b": 2}), reason).evictions

    cannot = replace(now, room={"b": 2}, overflows=False)
    assert not decide(cannot, FAILBACK).evictions


def test_nothing_goes_up_beyond_a_maximum_that_placeholders_of_others_take_up() -> None:
    shares = [FILL[0], replace(FILL[1], maximum=3), FILL[2]]
    pods = placed({"a": 2, "b": 2, "c": 2})
    now = workload_state(shares, pods, room={"b": 9}, limit=9)
    assert moves(decide(now, FAILBACK)) == [("c", "b")]
    waits = pods[-1]._replace(placeholders=("b",))
    now = replace(now, replicas=(*pods[:-1], waits))
    assert [each.uid for each in decide(now, FAILBACK).evictions] == [waits.uid]
    other = Replica("other", OUTSIDE, placeholders=("b",))
    assert not decide(replace(now, replicas=(*pods, other)), FAILBACK).evictions


def test_of_the_pods_of_a_cluster_those_that_are_not_ready_go_first_then_the_youngest() -> None:
    pods = [
        Replica("old", "c", age=9000.0, overflowed=True),
        Replica("young", "c", age=5000.0, overflowed=True),
        Replica("broken", "c", ready=False, age=9000.0, overflowed=True),
    ]
    now = workload_state([Share("a", 1)], tuple(pods), limit=3)
    now = replace(now, seats=Seats([Share("a", 1, tier=1), Share("c", 1)], "w"))
    assert [s.uid for s in decide(now, FAILBACK).evictions] == ["broken", "young", "old"]


def test_in_a_rollout_pods_are_moved_within_their_revision() -> None:
    def of(owner: str, age: float, **counts: int) -> tuple[Replica, ...]:
        revision = Revision("deployment/default/web", OwnerKey(owner))
        return tuple(
            each._replace(uid=f"{owner}-{each.uid}")
            for each in placed(counts, age=age, revision=revision)
        )

    shares = [Share("a"), Share("b")]
    both = of("old", 9000.0, a=3, b=1), of("new", 5000.0, a=1, b=3)
    now = workload_state(shares, both[0] + both[1], limit=9)
    decision = decide(now, REBALANCE)
    assert sorted((e.uid.partition("-")[0], e.source, e.target) for e in decision.evictions) == [
        ("new", "b", "a"),
        ("old", "a", "b"),
    ]
    assert not decide(replace(now, missing={"a": 1}), REBALANCE).evictions
    steady = of("old", 9000.0, a=2, b=2) + of("new", 5000.0, a=2, b=2)
    assert decide(replace(now, replicas=steady), REBALANCE) == Decision()
    assert len(decide(replace(now, replicas=both[0]), REBALANCE).evictions) == 1


@given(workload_states())
def test_the_first_step_is_the_same_if_only_one_is_asked_for(
    given: tuple[WorkloadState, MoveReason],
) -> None:
    now, reason = given
    assert decide(now, reason, 1).evictions == decide(now, reason).evictions[:1]


def test_a_step_costs_the_same_however_many_may_be_taken_at_once() -> None:
    seats = Seats((Share("a"), Share("b")), "deployment/default/web")
    now = WorkloadState(
        replicas=tuple(Replica(f"p{number}", "a") for number in range(200)),
        seats=seats,
        included=frozenset("ab"),
        room={"b": 200},
    )
    seats.plan(200)
    one = costs.bytecodes(lambda: decide(now, REBALANCE, 1))
    assert costs.bytecodes(lambda: decide(replace(now, limit=100), REBALANCE, 1)) < 1.1 * one


def test_of_very_many_revisions_some_are_planned() -> None:
    def cost(count: int) -> int:
        seats = Seats((Share("a"), Share("b")), "label/default/web")
        replicas = tuple(
            Replica(
                f"p{n}", "a", age=1000.0 + n, revision=Revision(f"d{n // 2}", OwnerKey(f"r{n}"))
            )
            for n in range(count)
        )
        now = WorkloadState(
            replicas=replicas, seats=seats, included=frozenset("ab"), room={"b": count}
        )
        return costs.bytecodes(lambda: decide(now, REBALANCE, 1))

    assert cost(800) < 2.5 * cost(400)
