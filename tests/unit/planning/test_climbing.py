"""Pods that overflowed go up to the best clusters with room, each a bounded number of times.

Choosing and moving work together here, in clusters whose room is known exactly.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.planning.test_choosing import ChoosingEnvironment
from tests.unit.planning.test_workload_counts import pod
from vnode.planning.move_reasons import FAILBACK
from vnode.planning.move_state import PlannedEviction, Replica, WorkloadState
from vnode.planning.moving import decide
from vnode.planning.policy import Overflow
from vnode.planning.seats import Share

AFTER = 60


class ClimbingEnvironment(ChoosingEnvironment):
    """Has pods that overflow, and are moved one by one where there is room."""

    def __init__(self, shares: list[Share], rooms: dict[str, int], most: int = 3) -> None:
        super().__init__(shares, Overflow(AFTER, max_candidates=most), **rooms)
        self.most = most
        self.overflowed: set[str] = set()
        self.evictions: list[PlannedEviction] = []

    def put(self, uid: str, **fields: object) -> None:
        member = self.workload.members.get(uid)
        if member is not None and member.aim and fields.get("node", member.aim) != member.aim:
            self.overflowed.add(uid)

        super().put(uid, **fields)

    def settle(self) -> None:
        """Let pods wait until each has a place, or there is none for it."""
        for _ in range(6):
            self.cycle()
            self.cycle()
            self.now += AFTER

    def one_in(self, node: str) -> str:
        """Return the UID of a pod that is bound there."""
        return next(m.uid for m in self.workload.members.values() if m.node == node)

    def state(self) -> WorkloadState:
        bound = self.workload.bound
        return WorkloadState(
            replicas=tuple(
                Replica(m.uid, m.node or m.aim, bool(m.node), overflowed=m.uid in self.overflowed)
                for m in self.workload.members.values()
            ),
            seats=self.workload.seats(self.shares),
            included=frozenset(share.node for share in self.shares),
            room={s.node: self.rooms[s.node] - bound[s.node] for s in self.shares},
            overflows=self.most > 1,
        )

    def move(self) -> PlannedEviction | None:
        """Move one pod; return how, None if none is to be moved."""
        evictions = decide(self.state(), FAILBACK).evictions
        if not evictions:
            return None

        [eviction] = evictions
        self.evictions.append(eviction)
        self.workload.remove(eviction.uid)
        self.workload.direct(eviction.target)
        self.workload.put(pod(f"new{len(self.evictions)}"))
        for _ in range(3):  # as soon as its planned cluster has rejected it
            self.cycle()

        return eviction


@st.composite
def fleets(draw: st.DrawFn) -> tuple[list[Share], dict[str, int], dict[str, int], int]:
    names = "abcd"[: draw(st.integers(2, 4))]
    shares = []
    for node in names:
        minimum = draw(st.integers(0, 2))
        maximum = draw(st.none() | st.integers(minimum, 8))
        weight = draw(st.integers(0, 3))
        shares.append(Share(node, weight, draw(st.integers(0, 2)), minimum, maximum))

    rooms = {node: draw(st.integers(0, 5)) for node in names}
    more = {node: draw(st.integers(0, 4)) for node in names}
    return shares, rooms, more, draw(st.integers(1, 12))


@given(fleets())
def test_each_move_succeeds_and_when_they_end_no_pod_could_be_better_off(
    fleet: tuple[list[Share], dict[str, int], dict[str, int], int],
) -> None:
    shares, rooms, more, replicas = fleet
    env = ClimbingEnvironment(shares, rooms)
    env.add(replicas)
    env.settle()
    if any(env.workload.pending()):
        return  # they take any room before a pod is moved

    for node, count in more.items():
        env.rooms[node] += count

    tiers = {share.node: share.tier for share in shares}
    for _ in range(3 * replicas):
        before = Counter(env.workload.bound)
        eviction = env.move()
        if eviction is None:
            break

        expected = before - Counter([eviction.source]) + Counter([eviction.target])
        assert env.workload.bound == expected, eviction
    else:
        raise AssertionError("it goes on for ever")

    assert len(env.evictions) <= 2 * replicas
    bound, planned = env.workload.bound, env.state().seats.plan(replicas).planned
    for share in shares:
        is_open = share.maximum is None or bound[share.node] < share.maximum
        if not is_open or bound[share.node] >= env.rooms[share.node] or not share.weight:
            continue

        for member in env.workload.members.values():
            is_surplus = bound[member.node] > planned.get(member.node, 0)
            if member.uid in env.overflowed and is_surplus:
                assert tiers[member.node] >= share.tier, (member.uid, share)


FILL = [Share("a", tier=3), Share("b", tier=2), Share("c", tier=1)]


def test_a_replacement_asks_its_planned_cluster_first_and_leaves_a_placeholder() -> None:
    env = ClimbingEnvironment(FILL, {"a": 2, "b": 2, "c": 9})
    env.add(8)
    env.settle()
    assert env.bound == {"a": 2, "b": 2, "c": 4}
    env.rooms["b"] = 3
    env.workload.remove(env.one_in("c"))
    env.workload.direct("b")
    env.workload.put(pod("new"))
    first = env.choose("new")
    assert (first.nodes(), first.directed) == (("a",), "b")
    assert first.until is not None
    assert first.until <= env.now
    assert not env.workload.directed
    env.put("new", since=env.now)
    assert env.choose("new").nodes() == ("a", "b")


@pytest.mark.parametrize(("most", "expected"), [(3, ("a", "b", "c")), (2, ("a", "c"))])
def test_where_it_was_moved_in_vain_it_overflows_when_it_would_have_anyway(
    most: int, expected: tuple[str, ...]
) -> None:
    env = ClimbingEnvironment(FILL, {"a": 2, "b": 2, "c": 9}, most)
    for number, node in enumerate("aabbccc"):
        env.workload.put(pod(f"p{number}", node=node))

    env.workload.direct("b")
    env.workload.put(pod("new"))
    env.choose("new")
    env.put("new", since=env.now)
    assert env.choose("new").nodes() == ("a", "b")
    env.now += AFTER
    assert env.choose("new").nodes() == expected
