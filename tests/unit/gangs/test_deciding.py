"""What is next for a gang."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.gangs.pods import member, pod, table
from tests.unit.scheduling import costs
from vnode.api import keys
from vnode.gangs import conflicts, deciding, kept_room, marks
from vnode.gangs.conflicts import TIMES, WINDOW, ConflictTurns, GangInTarget
from vnode.gangs.deciding import NextStep
from vnode.gangs.gang import Gang
from vnode.gangs.kept_room import KeepingTurns
from vnode.gangs.marks import GangMark


def gang_of(bound: int, waiting: int, over: int = 0, minimum: int = 3) -> Gang:
    pods = [member(f"b{n}", minimum, node="t") for n in range(bound)]
    pods += [member(f"w{n}", minimum) for n in range(waiting)]
    pods += [member(f"o{n}", minimum, status={"phase": "Succeeded"}, node="t") for n in range(over)]
    gangs = table(*pods)
    [gang] = gangs.values()
    return gang


COUNTS = st.integers(0, 6)


@given(COUNTS, st.integers(1, 6), COUNTS, COUNTS, st.integers(1, 6), st.booleans())
def test_pods_are_bound_only_together_and_a_target_is_left_as_soon_as_too_few_are_left(
    bound: int, waiting: int, ready: int, refused: int, minimum: int, grows: bool
) -> None:
    gang = gang_of(bound, waiting, minimum=minimum)
    uids = list(gang.waiting())
    gang.ready = set(uids[:ready])
    gang.refused = {uid: "no" for uid in uids if uid not in gang.ready}
    gang.refused = dict(list(gang.refused.items())[:refused])
    gang.grows_until = 10.0 if grows else 0.0
    step = deciding.next_step(gang, minimum, 5.0)
    together = bound + len(gang.ready)
    assert (step is NextStep.BIND) == (together >= minimum)
    if step is NextStep.LEAVE:
        assert not bound
        assert waiting - len(gang.refused) < minimum

    if waiting - len(gang.refused) < minimum and not bound and not grows:
        assert step is NextStep.LEAVE


def test_a_gang_has_started_once_enough_are_bound_and_until_none_is_left() -> None:
    gangs = table(*(member(f"b{n}", 3, node="t") for n in range(2)))
    for name in ("b0", "b1"):
        gangs.saw_reserved(name, reserved=True)

    assert not gangs.may_run("b0")
    gangs.on_pod(None, member("b2", 3, node="t"))
    assert not gangs.may_run("b0")
    gangs.saw_reserved("b0", reserved=False)  # it was lost while no agent was there
    gangs.saw_reserved("b2", reserved=True)
    assert not gangs.may_run("b0")
    gangs.saw_reserved("b0", reserved=True)
    assert gangs.may_run("b0")
    gangs.on_pod(member("b2", 3, node="t"), None)
    again = member("b3", 3)
    gangs.on_pod(None, again)
    assert gangs.hold(again) == ""  # it goes where the others are
    for name in ("b0", "b1"):
        gangs.on_pod(member(name, 3, node="t"), None)

    assert gangs.hold(again) == "waiting for 2 of 3 pods of the gang g"


def test_those_that_have_finished_count_for_what_has_started_and_not_for_what_is_to_start() -> None:
    gang = gang_of(bound=1, waiting=0, over=2)
    members = gang.members
    assert (members.placed, members.present) == (2, 1)
    members.reserve("b0", reserved=True)
    assert (members.placed, members.present) == (3, 1)


def test_a_pod_that_a_former_agent_has_let_run_shows_that_its_gang_has_started() -> None:
    gangs = table(member("b0", 3, node="t"), member("w0", 3))
    started: list[Gang] = []
    gangs.on_start(started.append)
    assert gangs.hold(member("w0", 3))
    gangs.saw_allowed("b0")
    assert gangs.hold(member("w0", 3)) == ""
    assert gangs.may_run("b0")
    assert len(started) == 1


def test_gated_pods_are_not_there_yet() -> None:
    gated = member("a", 2, spec={"schedulingGates": [{"name": "quota"}]})
    other = member("b", 2)
    assert table(gated, other).hold(other) == "waiting for 1 of 2 pods of the gang g"


def test_a_pod_without_a_reservation_cannot_be_of_a_gang() -> None:
    without = member("a", 1, annotations={keys.NO_RESERVATION: ""})
    assert f"remove annotation {keys.NO_RESERVATION}" in table(without).hold(without)


def test_the_tally_says_what_most_of_those_lack_that_wait() -> None:
    gang = gang_of(0, 4)
    gang.ready = {"w0"}
    text = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu, 1 Insufficient cpu."
    gang.refused = {"w1": text, "w2": text, "w3": "no answer for 30 s"}
    assert deciding.tally(gang, "east") == (
        "1 of 4 have a place in east; 3 wait: Insufficient nvidia.com/gpu, Insufficient cpu"
    )


@given(st.integers(1, 40), st.floats(0, 1))
def test_a_target_that_was_tried_in_vain_is_left_alone_longer_each_time_up_to_a_minute(
    count: int, spread: float
) -> None:
    rest = deciding.rest(count, spread)
    assert 0.5 <= rest <= deciding.LONGEST_REST * 1.5
    assert deciding.rest(count + 1, spread) >= rest


def there(source: str, reserved: int, priority: int = 0, since: str = "1") -> GangInTarget:
    return GangInTarget(f"of-{source}", source, GangMark("g", 4, since, priority), reserved)


def test_of_two_sources_the_younger_or_lesser_makes_way() -> None:
    old, young = there("a", 2), there("b", 2, since="2")
    assert conflicts.lesser([young, old]) == ("of-a", [young])
    important = there("c", 1, priority=5, since="3")
    assert conflicts.lesser([old, young, important]) == ("of-c", [old, young])


def test_one_for_which_others_have_made_way_too_often_comes_last_for_a_while() -> None:
    turns, old, young = ConflictTurns(), there("a", 2), there("b", 2, since="2")
    for moment in range(TIMES):
        assert conflicts.lesser([old, young], turns.last(moment)) == ("of-a", [young])
        turns.note("of-a", moment)

    assert conflicts.lesser([old, young], turns.last(WINDOW - 1)) == ("of-b", [old])
    assert conflicts.lesser([old, young], turns.last(WINDOW)) == ("of-a", [young])
    assert not costs.entries(turns)


def test_gangs_of_one_source_and_those_that_are_complete_or_hold_nothing_are_left_alone() -> None:
    assert conflicts.lesser([there("a", 2), there("a", 1, since="2")]) == ("of-a", [])
    assert conflicts.lesser([there("a", 4), there("b", 2, since="2")]) == ("of-b", [])
    assert conflicts.lesser([there("a", 0), there("b", 2, since="2")]) == ("of-b", [])
    assert conflicts.lesser([there("a", 4)]) == ("", [])


def test_a_mark_tells_what_decides_between_gangs() -> None:
    gang = gang_of(0, 2)
    found = marks.read({"metadata": {"annotations": {keys.GANG_MARK: marks.text(gang, 3)}}})
    assert found == GangMark("vnode.dev/gang/default/g", 3, "", 0)
    assert marks.read({"metadata": {"annotations": {keys.GANG_MARK: "{"}}}) is None
    assert marks.read({"metadata": {}}) is None


def test_room_is_kept_for_the_oldest_gang_from_younger_pods_that_want_what_it_wants() -> None:
    container = {"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}
    made = "2026-01-01T00:00:00Z"
    gangs = table(
        member("w0", 2, creationTimestamp=made, spec={"containers": [container], "priority": 3})
    )
    [gang] = gangs.values()
    turns = KeepingTurns()
    assert kept_room.oldest([gang], 1000, 300, turns) is None
    gang.complete_since, gang.best_node = 600.0, "t"
    assert kept_room.oldest([gang], 800, 300, turns) is None
    assert kept_room.oldest([gang], 1000, 300, turns) is gang
    kept = kept_room.keep(gang, "t")
    gpu, later = {"example.com/gpu": 1}, "2026-01-01T00:05:00Z"
    assert kept.keeps_off(pod("p", creationTimestamp=later), gpu)
    assert not kept.keeps_off(pod("p", creationTimestamp=later), {"cpu": 1})
    assert not kept.keeps_off(pod("p", creationTimestamp="2025-01-01T00:00:00Z"), gpu)
    assert not kept.keeps_off(pod("p", creationTimestamp=later, spec={"priority": 4}), gpu)
