"""A seed gives the same steps each time, and steps are about what is there."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import drawing, plan
from tests.faults.plan import (
    MOST_WORKLOADS,
    ON_PODS,
    Action,
    Fault,
    Kind,
    Step,
    Trouble,
    Verb,
    Wish,
)

AGENTS = ("agent", "agent-2")


def drawn(seed: int, count: int) -> list[tuple[Step, Wish, Wish]]:
    """(step, what was wanted before, what after)."""
    dice, wish, found = random.Random(seed), Wish(), []
    for _ in range(count):
        step, after = drawing.draw(dice, wish, longest=25, agents=AGENTS)
        found.append((step, wish, after))
        wish = after

    return found


@given(st.integers())
def test_a_seed_gives_the_same_steps_each_time(seed: int) -> None:
    assert drawn(seed, 5) == drawn(seed, 5)


@given(st.integers())
def test_actions_are_about_what_is_wanted_and_never_two_about_one(seed: int) -> None:
    for step, before, after in drawn(seed, 8):
        named = [action.workload.name for action in step.actions if action.workload]
        assert len(named) == len(set(named))
        assert len(after.workloads) <= MOST_WORKLOADS
        for action in step.actions:
            if action.thing is not None:
                there = after.things.get(action.thing.key)
                assert there == (action.thing if action.verb is Verb.PUT_THING else None)
            elif action.workload is None:
                assert action.target in plan.TARGETS
            elif action.verb is Verb.CREATE:
                assert action.workload.name not in before.workloads
            else:
                assert action.workload.name in before.workloads
                assert action.verb not in ON_PODS or action.workload.kind is not Kind.JOB


@given(st.integers())
def test_faults_are_of_what_there_is_and_end_in_time(seed: int) -> None:
    for step, _before, _after in drawn(seed, 8):
        assert step.faults
        for fault in step.faults:
            known = drawing.processes(AGENTS) if fault.trouble is Trouble.KILL else plan.LANES
            assert fault.where in known
            assert 0 < fault.seconds <= 26


def test_every_verb_and_every_trouble_is_drawn_sooner_or_later() -> None:
    steps = [step for step, _before, _after in drawn(1, 300)]
    assert {action.verb for step in steps for action in step.actions} == set(Verb)
    assert {fault.trouble for step in steps for fault in step.faults} == set(Trouble)


@pytest.mark.parametrize(
    ("where", "forced"),
    [("c1>c2", True), ("c2/agent", True), ("c1>c1", True), ("c1>c3", False), ("c3/agent", False)],
)
def test_removing_a_target_is_a_force_where_something_on_the_way_is_broken(
    where: str, forced: bool
) -> None:
    step = Step(
        (Action(Verb.REMOVE_TARGET, 1.0, target="c2"),),
        (Fault(Trouble.FREEZE, where, 0.0, 5.0),),
    )
    assert (step.forced_targets == {"c2"}) is forced
