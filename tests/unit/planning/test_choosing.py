"""Choices for pods of planned workloads: plans are kept, whatever order pods come in."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.planning.test_workload_counts import pod, requesting
from vnode.api.objects import Object
from vnode.planning import choosing
from vnode.planning.cluster_choice import ClusterChoice
from vnode.planning.policy import Overflow
from vnode.planning.seats import Share, plan
from vnode.planning.workload import Workload

PATIENT = Overflow(after=1e9)


class ChoosingEnvironment:
    """A workload in clusters with so much room, where time passes."""

    def __init__(self, shares: list[Share], overflow: Overflow = PATIENT, **rooms: int) -> None:
        self.shares = tuple(shares)
        self.overflow = overflow
        self.rooms = rooms
        self.workload = Workload("w")
        self.now = 0

    def add(self, count: int) -> None:
        for number in range(count):
            self.workload.put(pod(f"p{len(self.workload.members)}-{number}"))

    def choose(self, uid: str) -> ClusterChoice:
        member = self.workload.members[uid]
        choice = choosing.choose(self.workload, member, self.shares, self.overflow, float(self.now))
        self.workload.record(member, choice, float(self.now))
        return choice

    def cycle(self) -> None:
        """Try each pending pod once: it is bound where there is room, the best cluster first."""
        for member in list(self.workload.pending()):
            nodes = self.choose(member.uid).nodes()
            free = [n for n in nodes if self.workload.bound[n] < self.rooms.get(n, 10**9)]
            if free:
                self.put(member.uid, node=free[0])
            elif member.since is None:
                self.put(member.uid, since=self.now)

    def put(self, uid: str, **fields: object) -> None:
        made: Object = pod(uid, **fields)  # type: ignore[arg-type]
        self.workload.put(made)

    @property
    def bound(self) -> dict[str, int]:
        return dict(self.workload.bound)


@st.composite
def share_lists(draw: st.DrawFn) -> list[Share]:
    names = draw(st.lists(st.sampled_from("abcde"), min_size=1, unique=True))
    found = []
    for name in names:
        minimum = draw(st.integers(0, 3))
        maximum = draw(st.none() | st.integers(minimum, 8))
        found.append(
            Share(name, draw(st.integers(0, 9)), draw(st.integers(0, 2)), minimum, maximum)
        )

    return found


@given(share_lists(), st.lists(st.integers(1, 6), max_size=6))
def test_with_room_everywhere_pods_are_where_they_are_planned(
    shares: list[Share], bursts: list[int]
) -> None:
    env = ChoosingEnvironment(shares)
    for count in bursts:
        env.add(count)
        env.cycle()

    assert env.bound == plan(sum(bursts), shares, "w").planned


@given(share_lists(), st.integers(0, 20), st.data())
def test_waiting_pods_are_divided_by_the_plan_and_asking_again_changes_nothing(
    shares: list[Share], count: int, data: st.DataObject
) -> None:
    rooms = {share.node: data.draw(st.integers(0, 6)) for share in shares}
    env = ChoosingEnvironment(shares, PATIENT, **rooms)
    env.add(count)
    env.cycle()
    counted = +(env.workload.bound + env.workload.aimed)
    assert counted == plan(count, shares, "w").planned
    order = data.draw(st.permutations([member.uid for member in env.workload.pending()]))
    aims = {uid: env.workload.members[uid].aim for uid in order}
    assert {uid: env.choose(uid).aim for uid in order} == aims


@given(share_lists(), st.integers(0, 25), st.integers(1, 4), st.data())
def test_overflow_respects_maximums_and_the_number_of_candidates(
    shares: list[Share], count: int, candidates: int, data: st.DataObject
) -> None:
    rooms = {share.node: data.draw(st.integers(0, 6)) for share in shares}
    env = ChoosingEnvironment(shares, Overflow(10, candidates), **rooms)
    env.add(count)
    for _ in range(8):
        env.cycle()
        env.now += 7

    for share in shares:
        limit = min(rooms[share.node], 99 if share.maximum is None else share.maximum)
        assert env.bound.get(share.node, 0) <= limit
        assert share.maximum is None or env.workload.held[share.node] <= share.maximum

    for member in env.workload.pending():
        assert len(member.opened) < max(2, candidates)
        assert len({member.aim, *(node for node, _ in member.opened)}) == 1 + len(member.opened)
        assert candidates > 1 or not member.opened


def test_the_example_of_overflow() -> None:
    shares = [Share("a", 40, minimum=2), Share("b", 40, minimum=2), Share("c", 20, minimum=2)]
    env = ChoosingEnvironment(shares, Overflow(20, 3), a=6, b=6, c=14)
    env.add(20)
    env.cycle()
    assert env.bound == {"a": 6, "b": 6, "c": 4}
    assert env.workload.aimed == {"a": 2, "b": 2}
    env.now = 19
    env.cycle()
    assert env.bound == {"a": 6, "b": 6, "c": 4}
    env.now = 20
    env.cycle()
    assert env.bound == {"a": 6, "b": 6, "c": 8}


@pytest.mark.parametrize("most", [0, 1])
def test_a_cluster_that_takes_no_more_is_closed_again(most: int) -> None:
    """Pods had candidates there before their policy had a maximum, or drained the cluster."""
    env = ChoosingEnvironment([Share("a", 1), Share("b", 0, maximum=most)])
    env.add(2)
    for member in env.workload.pending():
        env.workload.plan(member, "a", (("b", 0.0),))

    opened = [env.choose(member.uid).opened for member in list(env.workload.pending())]
    assert sorted(map(len, opened)) == [0] * (2 - most) + [1] * most


def test_what_full_clusters_cannot_take_is_divided_by_the_weights_of_the_others() -> None:
    shares = [Share("a", 4), Share("b", 2), Share("c", 1)]
    env = ChoosingEnvironment(shares, Overflow(20, 2), a=0)
    env.add(14)
    env.cycle()
    assert env.bound == {"b": 4, "c": 2}
    env.now = 20
    env.cycle()
    assert Counter(env.bound) == plan(14, shares[1:], "w").planned


def test_full_clusters_of_a_tier_overflow_within_it_first() -> None:
    shares = [Share("a", 3, tier=1), Share("b", 1, tier=1), Share("c", 9)]
    env = ChoosingEnvironment(shares, Overflow(20, 3), a=1)
    env.add(8)
    env.cycle()
    assert env.bound == {"a": 1, "b": 2}
    env.now = 20
    env.cycle()
    assert env.bound == {"a": 1, "b": 7}


def test_the_moment_of_the_next_cluster_counts_from_when_the_pod_was_first_rejected() -> None:
    env = ChoosingEnvironment([Share("a"), Share("b"), Share("c")], Overflow(20, 3), a=0, b=0, c=0)
    env.now = 5
    env.add(1)
    assert env.choose("p0-0").until == 25
    env.cycle()
    env.now = 26
    choice = env.choose("p0-0")
    assert (len(choice.opened), choice.until) == (1, 45)
    env.now = 59
    choice = env.choose("p0-0")
    assert (len(choice.opened), choice.until) == (2, None)


@pytest.mark.parametrize(
    ("waiting", "own", "is_opened"), [(2, 1, True), (2, 2, False), (1, 2, False)]
)
def test_a_pod_that_waits_shows_that_a_cluster_is_full_to_those_that_are_no_smaller(
    waiting: int, own: int, is_opened: bool
) -> None:
    env = ChoosingEnvironment([Share("a"), Share("b")], Overflow(20, 2))
    for uid, cpus in (("w", waiting), ("p", own)):
        env.workload.put(requesting(cpus, pod(uid, since=0)))

    member = env.workload.members["w"]
    env.workload.plan(member, "a", (("b", 0.0),))
    env.now = 1000
    for _ in range(2):  # also once the other one has looked for a further cluster
        assert bool(env.choose("p").opened) is is_opened
        env.choose("w")


@pytest.mark.parametrize("target", ["b", "c"])
def test_a_gap_to_which_a_pod_was_moved_is_filled_first_and_once(target: str) -> None:
    env = ChoosingEnvironment([Share("a", 1), Share("b", 1), Share("c", 1)])
    env.put("p1", node="a")
    env.workload.direct(target)
    env.add(2)
    first, second = (env.choose(member.uid).aim for member in env.workload.pending())
    assert {first, second} == {"b", "c"}
    assert first == target
    assert not env.workload.directed


def test_without_a_gap_the_plan_goes_before_what_was_moved() -> None:
    env = ChoosingEnvironment([Share("a", 1), Share("c", 0)])
    env.workload.direct("c")
    env.add(2)
    env.cycle()
    assert env.bound == {"a": 2}
