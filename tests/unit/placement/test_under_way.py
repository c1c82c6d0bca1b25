"""When a move is over, and what is learnt from it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import background, computing
from tests.computing import BusyClock
from tests.unit.planning.test_plan import replica
from tests.unit.pods.policies import entry, spread
from tests.unit.scheduling import costs
from vnode.api.owners import owner_key
from vnode.placement.moves.controller import Moves
from vnode.placement.moves.move import Move, MoveOutcome
from vnode.placement.moves.taken_places import REPORTED, TakenPlaces
from vnode.placement.moves.under_way import BACKOFF, MovesUnderWay
from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.planning.failover import OWNER
from vnode.planning.move_policy import STARTING
from vnode.planning.move_reasons import DRAIN
from vnode.planning.move_state import Replica
from vnode.planning.workload import Workload
from vnode.planning.workload_key import PlannedWorkload
from vnode.scheduling.promises import REPORT_SECONDS


def begun(*targets: str) -> MovesUnderWay:
    moves = MovesUnderWay()
    for number, target in enumerate(targets):
        uids = frozenset({"other", *(f"old{n}" for n in range(len(targets)))})
        moves.begin(Move(f"old{number}", f"default/old{number}", target, DRAIN, None), uids)

    return moves


def settle(
    moves: MovesUnderWay, *replicas: Replica, now: float, there: bool = False
) -> list[MoveOutcome]:
    """Return how moves have ended."""
    ended = moves.settle((Replica("other", "x"), *replicas), lambda _move: there, now)
    return [outcome for _, outcome in ended]


def test_a_move_is_over_when_a_later_pod_is_ready() -> None:
    moves = begun("a")
    settle(moves, now=0.0, there=True)
    assert (len(moves), dict(moves.missing())) == (1, {"a": 1})
    settle(moves, Replica("new", "a", bound=False, ready=False), now=1.0)
    assert (len(moves), dict(moves.missing())) == (1, {})
    assert settle(moves, Replica("new", "a"), now=2.0) == [MoveOutcome.ARRIVED]
    assert not moves
    assert moves.in_backoff(2.0) == frozenset()


def test_each_later_pod_replaces_one() -> None:
    moves = begun("a", "b")
    settle(moves, Replica("new", "a", age=1.0), now=1.0)
    assert [move.uid for move in moves.moves] == ["old1"]
    settle(moves, Replica("new", "a"), Replica("newer", "b", ready=False), now=2.0)
    assert [move.replacement for move in moves.moves] == ["newer"]


def test_of_several_later_pods_each_replaces_the_one_that_was_moved_to_its_cluster() -> None:
    moves = begun("a", "b")
    young = Replica("new", "", bound=False, ready=False)
    settle(moves, young, now=1.0)
    assert dict(moves.missing()) == {"b": 1}
    settle(moves, young._replace(node="b"), Replica("newer", "a", ready=False), now=2.0)
    assert {move.uid: move.replacement for move in moves.moves} == {"old0": "newer", "old1": "new"}
    settle(moves, Replica("new", "b"), Replica("newer", "a"), now=3.0)
    assert not moves
    assert moves.in_backoff(3.0) == frozenset()
    assert moves.targets(3.0) == {"a", "b"}
    assert moves.targets(60.0) == frozenset()


def test_a_pod_that_goes_before_it_is_ready_replaces_none() -> None:
    moves = begun("a")
    settle(moves, Replica("new", "a", ready=False), now=1.0)
    settle(moves, Replica("newer", "a", ready=False), now=2.0)
    assert [move.replacement for move in moves.moves] == ["newer"]


def test_a_workload_that_makes_no_other_pod_lacks_none() -> None:
    moves = begun("a")
    settle(moves, now=0.0, there=True)
    settle(moves, now=500.0, there=True)
    assert len(moves) == 1
    settle(moves, now=600.0)
    assert moves.wait(600.0) == OWNER
    assert settle(moves, now=600.0 + OWNER) == [MoveOutcome.UNREPLACED]
    assert not moves


def test_a_cluster_where_pods_do_not_start_is_left_alone_for_longer_each_time() -> None:
    moves, now = begun("a"), 0.0
    assert settle(moves, Replica("new", "b"), now=now) == [MoveOutcome.ELSEWHERE]
    assert moves.in_backoff(now) == {"a"}
    now += BACKOFF
    assert moves.in_backoff(now) == frozenset()
    moves.begin(Move("old9", "default/old9", "a", DRAIN, None), {"other", "new"})
    settle(moves, Replica("new9", "a", ready=False), now=now)
    late = settle(moves, Replica("new9", "a", ready=False), now=now + STARTING)
    assert late == [MoveOutcome.LATE]
    assert not moves
    assert moves.in_backoff(now + STARTING + 2 * BACKOFF - 1) == {"a"}
    assert moves.in_backoff(now + STARTING + 2 * BACKOFF) == frozenset()


def test_places_are_taken_until_reports_must_show_them() -> None:
    moves = begun("a", "a")
    assert dict(moves.taken(0.0)) == {"a": 2}
    settle(moves, Replica("new", "a"), now=1.0)
    assert dict(moves.taken(1.0)) == {"a": 2}
    assert moves.wait(1.0) == REPORT_SECONDS
    assert dict(moves.taken(1.0 + REPORT_SECONDS)) == {"a": 1}


def test_a_back_off_ends_early_once_for_the_same_room() -> None:
    moves = begun("a")
    moves.moves[0].fits = 1
    settle(moves, Replica("new", "b"), now=0.0)
    assert not moves.reopen("a", 1, 1.0)
    assert moves.reopen("a", 3, 2.0)
    assert moves.in_backoff(2.0) == frozenset()
    again = Move("old9", "default/old9", "a", DRAIN, None)
    again.fits = 1
    moves.begin(again, {"other", "new"})
    settle(moves, Replica("new9", "b"), now=3.0)
    assert moves.backoffs(3.0) == {"a": 3.0 + 2 * BACKOFF}
    assert not moves.reopen("a", 3, 4.0)


def test_a_pod_that_came_to_a_better_cluster_was_not_moved_in_vain() -> None:
    moves = begun("a")
    moves.moves[0].better = frozenset({"b"})
    assert settle(moves, Replica("new", "b"), now=0.0) == [MoveOutcome.ELSEWHERE]
    assert moves.in_backoff(0.0) == frozenset()


@pytest.mark.parametrize("changed", [False, True])
def test_a_pod_that_another_policy_has_planned_was_not_moved_in_vain(changed: bool) -> None:
    before = spread(entry("a"))
    workload = Workload("deployment/default/web")
    moves = WorkloadMoves(PlannedWorkload(workload.key, ""), before, workload)
    pod = replica("new", "b")
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    moves.begin(Move("old", "default/old", "a", DRAIN, owner_key(pod)))
    workload.put(pod)
    after = spread(entry("b")) if changed else replace(before)
    moves.settle(after, workload, lambda _move: False, 0.0, datetime(2026, 1, 1, tzinfo=UTC))
    assert not moves.under_way
    assert moves.under_way.in_backoff(0.0) == (frozenset() if changed else {"a"})


def crowd(count: int) -> MovesUnderWay:
    """Return moves of half as many pods as there are; those of the others are replaced in vain."""
    moves, uids = MovesUnderWay(), {f"old{number}" for number in range(count)}
    for number in range(count // 2):
        moves.begin(Move(f"old{number}", f"default/old{number}", "a", DRAIN, None), uids)

    return moves


def test_many_moves_of_many_pods_cost_what_each_of_these_does() -> None:
    def cost(count: int) -> int:
        old = [Replica(f"old{number}", "b") for number in range(count // 2, count)]
        new = [Replica(f"new{number}", "b", bound=False, ready=False) for number in range(count)]
        moves = crowd(count)
        found = costs.bytecodes(lambda: settle(moves, *old, *new, now=0.0))
        assert all(move.replacement for move in moves.moves)
        return found

    assert cost(400) < 5 * cost(100)
    assert costs.entries(crowd(400)) < 5 * costs.entries(crowd(100))


@given(st.lists(st.sampled_from("abx+-"), max_size=30), st.randoms(use_true_random=False))
def test_a_pod_that_was_there_when_a_move_began_never_replaces_its_pod(
    acts: list[str], random: Random
) -> None:
    """Moves to `a` and `b` begin, pods come (+) and go (-), and a move is settled at each (x)."""
    moves, pods, known = MovesUnderWay(), {"p": Replica("p", "a")}, dict[str, set[str]]()
    for number, act in enumerate(acts):
        if act == "+":
            node, age = random.choice("ab"), random.random()
            pods[f"n{number}"] = Replica(f"n{number}", node, ready=random.random() < 0.3, age=age)
        elif act == "-" and len(pods) > 1:
            del pods[random.choice(sorted(pods))]
        elif act in "ab":
            known[f"m{number}"] = set(pods)
            moves.begin(Move(f"m{number}", f"default/m{number}", act, DRAIN, None), pods.keys())
        elif act == "x":
            left = [*moves.moves]
            over = moves.settle(pods.values(), lambda _move: True, 0.0)
            matched = [move.replacement for move in left if move.replacement]
            assert len(set(matched)) == len(matched)
            assert all(move.replacement not in known[move.uid] for move in left)
            free = pods.keys() - set(matched)
            for move in left:
                assert move.replacement or not free - known[move.uid]

            for move, _ in over:
                for others in known.values():
                    others.add(move.replacement)


def test_what_all_moves_take_is_counted_and_not_looked_up() -> None:
    every, now = TakenPlaces(), 0.0
    each = [TakenPlaces(every) for _ in range(300)]
    for number, places in enumerate(each):
        places.begin("ab"[number % 2])
        if number % 3 == 0:
            places.end("ab"[number % 2])
            places.land("c", now)

    summed = sum((places.taken(now) for places in each), Counter[str]())
    assert every.taken(now) == summed == {"a": 100, "b": 100, "c": 100}
    for places in each[:-1]:
        places.leave()

    assert every.taken(now) == {"b": 1}
    assert every.targets(now) == {"b"}
    assert costs.bytecodes(lambda: every.taken(now)) < 200
    each[-1].end("b")
    each[0].land("c", now)
    each[0].tidy(now + REPORTED + 1)
    assert costs.entries(every) == costs.entries(TakenPlaces())


async def test_a_change_of_a_cluster_has_workloads_looked_at_in_slices() -> None:
    absent: Any = SimpleNamespace(turns=SimpleNamespace(subscribe=lambda _wake: None))
    moves = Moves(*(absent,) * 7, clock=BusyClock(), on_plan_freed=lambda _namespace: None)
    for number in range(100):
        key = PlannedWorkload(f"pod/default/p{number}", "")
        moves._workloads.add(WorkloadMoves(key, spread(), Workload(key.workload)))

    async with background.running(moves._cluster_changes.run()):
        with computing.steps() as steps:
            moves._cluster_changes.add("node")
            await asyncio.sleep(0.1)

        assert len(moves._controller._queue._timers) == 100

    moves._controller._queue.close()
    assert len(steps) > 30
