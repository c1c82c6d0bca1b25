"""The candidate phase: which target is tried when, and which wins."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import keys
from vnode.api.errors import ConfigError
from vnode.pods.source import candidates
from vnode.pods.source.candidates import (
    Bind,
    Candidate,
    CandidateSettings,
    CandidateState,
    Create,
    GiveUp,
    Wait,
)

SETTINGS = CandidateSettings(parallel=1, stagger=2.0, patience=30.0, keep_rejected=1)


def decide(ranked, known, *, heard=None, now=100.0, settings=SETTINGS):
    return candidates.decide(ranked, known, heard or {}, now, settings)


def waiting(since=100.0):
    return Candidate(CandidateState.WAITING, since)


def rejected(since=100.0):
    return Candidate(CandidateState.REJECTED, since, "full")


def reserved(since=100.0):
    return Candidate(CandidateState.RESERVED, since)


def test_the_best_target_is_tried_first():
    assert decide(["a", "b"], {}) == Create("a")


def test_only_one_target_is_asked_while_it_may_still_answer():
    assert decide(["a", "b"], {"a": waiting()}) == Wait(2.0)


def test_all_targets_are_asked_at_once_if_so_configured():
    both = CandidateSettings(parallel=2)
    assert decide(["a", "b"], {"a": waiting()}, settings=both) == Create("b")


def test_a_rejection_brings_in_the_next_target_at_once():
    assert decide(["a", "b"], {"a": rejected()}) == Create("b")


def test_a_silent_target_brings_in_the_next():
    assert decide(["a", "b"], {"a": waiting(since=98.0)}) == Create("b")


def test_a_target_that_answers_others_is_busy_and_not_silent():
    assert decide(["a", "b"], {"a": waiting(since=90.0)}, heard={"a": 99.0}) == Wait(1.0)


def test_a_busy_target_is_not_waited_for_beyond_patience():
    assert decide(["a", "b"], {"a": waiting(since=69.0)}, heard={"a": 99.9}) == Create("b")


def test_a_reservation_wins_over_waiting():
    assert decide(["a", "b"], {"a": waiting(), "b": reserved()}) == Bind("b")


def test_of_two_reservations_the_better_ranked_wins():
    assert decide(["b", "a"], {"a": reserved(), "b": reserved()}) == Bind("b")


def test_a_decision_that_was_made_before_stands_against_any_reservation():
    committed = Candidate(CandidateState.COMMITTED, 0.0)
    assert decide(["a", "b"], {"a": reserved(), "b": committed}) == Bind("b")


def test_a_reservation_on_a_target_that_is_no_longer_feasible_still_wins():
    assert decide([], {"c": reserved()}) == Bind("c")


def test_when_all_have_rejected_the_pod_is_unschedulable():
    assert decide(["a", "b"], {"a": rejected(), "b": rejected()}) == GiveUp()


def test_without_any_target_the_pod_is_unschedulable():
    assert decide([], {}) == GiveUp()


def test_the_last_target_is_waited_for_with_patience():
    assert decide(["a"], {"a": waiting(since=90.0)}) == Wait(20.0)


def test_surplus_rejected_candidates_are_the_least_preferred():
    known = {"a": rejected(), "b": rejected(), "c": reserved()}
    assert candidates.surplus(["b", "a", "c"], known, {}, SETTINGS) == ["a"]


def test_surplus_rejected_candidates_are_those_of_the_oldest_attempts():
    known = {"a": rejected(), "b": rejected(), "c": rejected()}
    asked = {"a": 2.0, "b": 3.0}
    assert candidates.surplus(["c", "a", "b"], known, asked, SETTINGS) == ["a", "c"]


@pytest.mark.parametrize(
    ("annotations", "conditions", "expected"),
    [
        ({}, [], CandidateState.WAITING),
        ({keys.IS_RESERVED: "true"}, [], CandidateState.RESERVED),
        ({keys.IS_RESERVED: ""}, [], CandidateState.RESERVED),
        ({}, ["Unschedulable"], CandidateState.REJECTED),
        ({keys.IS_RESERVED: "true"}, ["Unschedulable"], CandidateState.RESERVED),
        ({keys.IS_RESERVED: "true"}, ["SchedulerError"], CandidateState.RESERVED),
        ({keys.IS_ALLOWED: "true"}, ["Unschedulable"], CandidateState.COMMITTED),
        ({keys.POD_MISSING_SINCE: "now"}, ["Unschedulable"], CandidateState.LOST),
        ({keys.POD_MISSING_SINCE: "now", keys.IS_RESERVED: "true"}, [], CandidateState.LOST),
        ({keys.POD_MISSING_SINCE: "now", keys.IS_ALLOWED: "true"}, [], CandidateState.COMMITTED),
    ],
)
def test_a_chaperon_is_read_as_the_contract_has_it(annotations, conditions, expected):
    chaperon = {
        "metadata": {"annotations": annotations},
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": reason}
                for reason in conditions
            ]
        },
    }
    assert candidates.read(chaperon, 0.0).state is expected


@pytest.mark.parametrize(
    ("annotations", "scheduled", "expected"),
    [
        ({}, None, False),
        ({keys.IS_RESERVED: "true"}, "False", False),
        ({keys.IS_ALLOWED: "true"}, None, False),
        ({keys.IS_ALLOWED: "true"}, "False", False),
        ({keys.IS_ALLOWED: "true"}, "True", True),
    ],
)
def test_a_candidate_has_a_node_once_its_target_counts_it(annotations, scheduled, expected):
    conditions = [{"type": "PodScheduled", "status": scheduled}] if scheduled else []
    chaperon = {
        "metadata": {"annotations": annotations},
        "status": {"conditions": conditions},
    }
    assert candidates.has_node(chaperon) is expected


_nodes = st.sampled_from(["a", "b", "c", "d"])
_candidate = st.builds(Candidate, st.sampled_from(CandidateState), st.floats(0, 100))


@given(
    st.lists(_nodes, unique=True),
    st.dictionaries(_nodes, _candidate),
    st.dictionaries(_nodes, st.floats(0, 100)),
    st.integers(1, 4),
)
def test_a_phase_always_comes_to_an_end(ranked, known, heard, parallel):
    """Whatever the start: if no target ever answers, the phase gives up within bounded time."""
    settings = CandidateSettings(parallel=parallel)
    now = 100.0
    for _ in range(40):
        action = candidates.decide(ranked, known, heard, now, settings)
        match action:
            case Create(node):
                assert node not in known
                known = {**known, node: Candidate(CandidateState.WAITING, now)}
            case Wait(seconds):
                assert seconds > 0
                now += seconds
            case Bind(node):
                assert known[node].state in (CandidateState.RESERVED, CandidateState.COMMITTED)
                return
            case GiveUp():
                assert now <= 100.0 + settings.patience * 5
                return

    raise AssertionError("the phase never ends")


@given(st.dictionaries(_nodes, _candidate), st.floats(0, 200))
def test_a_candidate_never_wins_without_a_reservation(known, now):
    known = {
        node: dataclasses.replace(candidate, state=CandidateState.WAITING)
        for node, candidate in known.items()
    }
    assert not isinstance(decide(list(known), known, now=now), Bind)


def test_a_pod_allowed_in_a_target_that_does_not_answer_goes_nowhere_else():
    held = Candidate(CandidateState.HELD, 100.0, "no answer")
    assert decide(["b"], {"a": held}) == GiveUp()
    assert decide(["b"], {"a": held, "b": waiting()}) == GiveUp()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"parallel": 0}, "parallel must be 1 or more"),
        ({"keep_rejected": -1}, "keepRejected 0 or more"),
        ({"stagger": 0.0}, "stagger must be above 0"),
        ({"stagger": 31.0}, "not above patience"),
    ],
)
def test_settings_that_no_pod_could_be_placed_by_are_refused(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        CandidateSettings(**settings).check()


def test_the_default_settings_are_good():
    CandidateSettings().check()


@pytest.mark.parametrize("reason", ["Unschedulable", "SchedulerError"])
def test_of_a_message_of_a_mebibyte_some_is_read(reason):
    condition = {"type": "PodScheduled", "status": "False", "reason": reason}
    status = {"conditions": [{**condition, "message": "\u202e" * 1024 * 1024}]}
    assert len(candidates.read({"metadata": {}, "status": status}, 0.0).message) <= 8192


def test_of_what_a_target_says_of_a_gang_some_is_read():
    annotations = {keys.GANG_REFUSED: "\u202e" * 1024 * 1024}
    assert len(candidates.read({"metadata": {"annotations": annotations}}, 0.0).message) <= 8192
