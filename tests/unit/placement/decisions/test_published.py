"""What is published of a policy, and when a change is news."""

from __future__ import annotations

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys, kinds
from vnode.api.objects import Object
from vnode.placement.decisions import published
from vnode.placement.decisions.published import KEPT, Wanted
from vnode.planning.cluster_decision import Publishing

WHERE = Publishing("fleet", "web")
POLICY: Object = {"metadata": {"name": "web", "namespace": "fleet", "uid": "u"}}


def made(count: int) -> list[Object]:
    profiles = [f"fleet/c{number:03}" for number in range(count)]
    return published.slices(POLICY, kinds.PLACEMENT_POLICIES, WHERE, profiles)


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, [0]), (1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])]
)
def test_a_slice_has_a_hundred_clusters_at_most(count: int, sizes: list[int]) -> None:
    found = made(count)
    assert [len(each["decisions"]) for each in found] == sizes
    assert [each["metadata"]["name"] for each in found] == [f"web-{n}" for n in range(len(sizes))]
    for index, each in enumerate(found):
        labels = each["metadata"]["labels"]
        assert labels[keys.DECISION_KEY] == "web"
        assert labels[keys.DECISION_INDEX] == str(index)
        assert each["schedulerName"] == "vnode"
        [owner] = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("PlacementPolicy", "web", "u")


@given(st.integers(0, 350), st.randoms())
def test_what_is_published_reads_as_it_was_meant(count: int, random: Random) -> None:
    found = made(count)
    random.shuffle(found)
    assert published.is_whole(found, WHERE)
    assert published.listed(found) == tuple(f"fleet/c{number:03}" for number in range(count))


def test_what_is_not_as_it_was_meant_is_written_again() -> None:
    assert not published.is_whole([], WHERE)
    assert not published.is_whole(made(250)[1:], WHERE)
    assert not published.is_whole(made(1), Publishing("fleet", "other"))
    assert not published.is_whole(made(1), Publishing("other", "web"))
    odd = {"metadata": {"labels": {keys.DECISION_INDEX: "x"}}, "decisions": [7, {}]}
    assert not published.is_whole([odd], WHERE)
    assert published.listed([odd, *made(1)]) == ("fleet/c000",)
    wanted = made(2)[0]
    assert not published.differs(wanted, wanted)
    assert published.differs({**wanted, "decisions": []}, wanted)
    assert published.differs({**wanted, "metadata": {"labels": {}}}, wanted)


def test_the_cluster_with_the_most_pods_comes_first() -> None:
    profiles = {"a": "fleet/a", "b": "fleet/b", "c": "fleet/c", "b2": "fleet/b"}
    pods = {"a": 2, "b": 1, "b2": 1, "c": 3, "x": 9, "z": 0}
    assert published.ranked(pods, profiles) == ["fleet/c", "fleet/a", "fleet/b"]


def test_a_cluster_that_has_lost_its_pods_stays_for_a_while() -> None:
    since: dict[str, float] = {}
    assert published.steady("ab", "a", since, 10) == Wanted(("a", "b"), KEPT)
    assert published.steady("ab", "a", since, 40) == Wanted(("a", "b"), KEPT - 30)
    assert published.steady("ab", "ba", since, 50) == Wanted(("b", "a"))
    assert published.steady("ab", "a", since, 60) == Wanted(("a", "b"), KEPT)
    assert published.steady("ab", "a", since, 60 + KEPT) == Wanted(("a",))
    assert published.steady("a", "a", since, 200) == Wanted(("a",))
    assert not since


def test_clusters_without_end_that_somebody_has_listed_are_looked_up() -> None:
    listed, best = [f"a/b{n}" for n in range(20_000)], [f"a/c{n}" for n in range(1_000)]
    begun = time.thread_time()
    wanted = published.steady(listed, best, {}, 0.0)
    assert time.thread_time() - begun < 0.2  # 0.34 s, with a list gone through for each
    assert len(wanted.profiles) == 21_000
