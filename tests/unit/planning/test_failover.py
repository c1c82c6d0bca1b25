"""Of the ending pods of an owner, as many wait as there are replacements that are not ready yet."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests import computing
from vnode.planning.failover import OWNER, EndingPod, LivePod, awaiting
from vnode.planning.move_policy import STARTING


def ending(
    uid: str, since: float, before: int | None = None, *, number: int = 0, created: float = 0.0
) -> EndingPod:
    return EndingPod(uid, since, before, created, number=number)


def live(uid: str, created: float, number: int = 0, *, ready: bool = True) -> LivePod:
    return LivePod(uid, created, ready, number)


def waits(*uids: str) -> frozenset[str]:
    return frozenset(uids)


def test_a_pod_waits_until_its_replacement_is_ready() -> None:
    old = [ending("a", 100)]
    assert awaiting(old, [live("b", 0)], 100) == (waits("a"), OWNER)  # there is no new pod yet
    assert awaiting(old, [live("b", 0), live("c", 101, ready=False)], 103) == (
        waits("a"),
        STARTING - 2,
    )
    assert awaiting(old, [live("b", 0), live("c", 101)], 104) == (waits(), None)


def test_of_several_the_one_that_was_deleted_first_ends_first() -> None:
    old = [ending("b", 101), ending("a", 100)]
    new = [live("c", 100, ready=False), live("d", 101)]
    assert awaiting(old, new, 105)[0] == {"b"}
    assert awaiting(old, [live("c", 100), live("d", 101)], 105)[0] == set()


def test_whose_replacement_is_ready_first_does_not_matter() -> None:
    """The pod that was deleted first is gone, by the replacement of the other one."""
    left, new = [ending("b", 105)], [live("c", 100, ready=False), live("d", 105)]
    assert awaiting(left, new, 106)[0] == {"b"}


def test_a_replacement_that_is_moved_itself_has_replaced_one_before() -> None:
    first = ending("a", 100, 0)
    moved_on = ending("b", 102, 1, number=1)
    assert awaiting([first, moved_on], [live("x", 0)], 102)[0] == {"b"}
    assert awaiting([first, moved_on], [live("x", 0), live("c", 102, 2)], 103) == (waits(), None)
    by_time = [ending("a", 100), ending("b", 102, created=100)]
    assert awaiting(by_time, [live("x", 0), live("c", 102)], 103) == (waits(), None)


def test_one_that_never_served_does_not_wait_in_the_place_of_one_that_does() -> None:
    """A pod was moved, and so was the one that replaced it, before it was ready."""
    serving = ending("a", 100, 0)
    replaced = replace(ending("b", 102, 1, number=1), serves=False)
    assert awaiting([serving, replaced], [], 102)[0] == {"a"}
    assert awaiting([serving, replaced], [live("c", 103, 2, ready=False)], 104)[0] == {"a"}
    assert awaiting([serving, replaced], [live("c", 103, 2)], 105) == (waits(), None)


def test_who_replaced_a_pod_that_is_gone_replaces_no_other() -> None:
    """Of two that were deleted together one is gone, and two more are deleted."""
    old = [ending("b", 100, 0), ending("x", 102, 2)]
    new = [live("c", 100, 1), live("d", 100, 2), live("y", 0)]
    assert awaiting(old, new, 103)[0] == {"x"}
    assert awaiting(old, [*new, live("e", 103, 3)], 104) == (waits(), None)


def test_who_has_no_replacement_within_a_minute_gets_none() -> None:
    old = [ending("a", 100)]
    assert awaiting(old, [live("b", 0)], 159) == (waits("a"), 1)
    assert awaiting(old, [live("b", 0)], 160) == (waits(), None)


def test_a_pod_that_has_been_starting_for_long_is_nobodys_replacement() -> None:
    old = [ending("a", 700)]
    crashing, made = live("b", 0, ready=False), live("c", 701)
    assert awaiting(old, [crashing, made], 702) == (waits(), None)


def test_pods_that_there_were_before_replace_nobody_though_timestamps_are_coarse() -> None:
    assert awaiting([ending("a", 100, 0)], [live("b", 100)], 100)[0] == {"a"}
    assert awaiting([ending("a", 100)], [live("b", 100)], 100)[0] == set()


def test_those_that_were_deleted_at_the_same_moment_may_have_been_so_in_any_order() -> None:
    """The one that comes first by its UID was deleted last: when a pod had come already."""
    old = [ending("a", 100, 1), ending("b", 100, 0)]
    new = [live("c", 100, 1), live("d", 101, 2)]
    assert awaiting(old, new[1:], 103)[0] == {"b"}
    assert awaiting(old, new, 103) == (waits(), None)


def test_thousands_are_judged_in_a_moment() -> None:
    old = [ending(f"old-{n}", n / 100, n, number=n // 2) for n in range(5_000)]
    new = [live(f"new-{n}", n / 100, n, ready=False) for n in range(5_000)]
    with computing.within(0.05):
        assert len(awaiting(old, new, 50.0)[0]) == 5_000


_MOMENTS = st.integers(0, 1000).map(float)
_ENDING = st.lists(_MOMENTS, max_size=5).map(
    lambda moments: [ending(f"old-{n}", at) for n, at in enumerate(moments)]
)
_LIVING = st.lists(st.tuples(_MOMENTS, st.booleans()), max_size=8).map(
    lambda pods: [live(f"new-{n}", at, ready=ready) for n, (at, ready) in enumerate(pods)]
)


@given(_ENDING, _LIVING)
def test_nobody_waits_for_ever(old: list[EndingPod], new: list[LivePod]) -> None:
    now, asked = 1000.0, 0
    while True:
        waiting, seconds = awaiting(old, new, now)
        assert waiting <= {pod.uid for pod in old}
        assert (seconds is None) is (not waiting)
        if seconds is None:
            break

        now, asked = now + seconds, asked + 1
        assert asked < 20


@given(_ENDING, _LIVING)
def test_no_more_wait_than_pods_are_missing(old: list[EndingPod], new: list[LivePod]) -> None:
    waiting, _ = awaiting(old, new, 1000.0)
    unready = sum(not pod.ready for pod in new)
    recent = sum(1000.0 - pod.since < OWNER for pod in old)
    assert len(waiting) <= unready + recent


@given(_ENDING, _LIVING)
def test_as_many_wait_as_cannot_be_told_their_replacement(
    old: list[EndingPod], new: list[LivePod]
) -> None:
    """Against pairs that are sought one by one, where nobody is starting."""
    ready = [live(pod.uid, pod.created) for pod in new]
    left, unpaired = [pod.created for pod in ready], 0
    for pod in sorted(old, key=lambda pod: pod.since, reverse=True):
        later = [created for created in left if created >= pod.since]
        if later:
            left.remove(later[0])
        else:
            unpaired += 1000.0 - pod.since < OWNER

    recent = [pod for pod in old if 1000.0 - pod.since < OWNER]
    waiting, _ = awaiting(recent, ready, 1000.0)
    assert len(waiting) == unpaired
