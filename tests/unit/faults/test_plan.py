"""A seed gives the same steps each time, and steps are about what is there."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults import drawing, plan
from tests.faults.freezing import BYSTANDERS
from tests.faults.plan import (
    CROWD,
    EVICTIONS,
    MOST_WORKLOADS,
    ON_PODS,
    Action,
    Fault,
    Step,
    Trouble,
    Verb,
    WantedWorkload,
    Wish,
    WorkloadKind,
)

AGENTS = ("agent", "agent-2")


def drawn(seed: int, count: int) -> list[tuple[Step, Wish, Wish]]:
    """Draw steps; return (step, what was wanted before, what is wanted after) for each."""
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
        created = {a.workload.name for a in step.actions if a.workload and a.verb is Verb.CREATE}
        about = [
            what
            for action in step.actions
            if action.verb is not Verb.ANNOTATE_DELEGATE and not ends_new_pods(action)
            for what in action.about
        ]
        assert len(about) == len(set(about))
        assert len(after.workloads) <= MOST_WORKLOADS + 3  # with what comes of a crowd
        for action in step.actions:
            if action.thing is not None:
                there = after.things.get(action.thing.key)
                assert there == (action.thing if action.verb is Verb.PUT_THING else None)
            elif action.workload is None:
                assert action.target in plan.TARGETS
            elif action.verb is Verb.CREATE:
                assert action.workload.name not in before.workloads
            elif action.workload.kind is WorkloadKind.JOB and action.verb is not Verb.REMOVE:
                assert ends_new_pods(action)
                assert action.workload.name in created
            else:
                assert action.workload.name in before.workloads


def ends_new_pods(action: Action) -> bool:
    """Return pods of a Job, which are there only in the step that creates it."""
    return (
        action.workload is not None
        and action.workload.kind is WorkloadKind.JOB
        and action.verb in ON_PODS
    )


@given(st.integers())
def test_pods_of_a_job_that_ignores_disruptions_are_evicted_at_the_most(seed: int) -> None:
    for step, _before, _after in drawn(seed, 8):
        for action in step.actions:
            if (
                ends_new_pods(action)
                and action.workload
                and action.workload.job.ignores_disruptions
            ):
                assert action.verb in EVICTIONS


@given(st.integers())
def test_jobs_are_those_that_kubernetes_takes(seed: int) -> None:
    for _step, _before, after in drawn(seed, 8):
        for workload in after.workloads.values():
            assert workload.job.replaces_failed or not workload.job.ignores_disruptions


@given(st.integers())
def test_a_crowd_ends_in_the_step_after_it_came_while_only_its_target_is_frozen(seed: int) -> None:
    for step, before, after in drawn(seed, 12):
        crowds = [w for w in before.workloads.values() if w.replicas == CROWD]
        if not crowds:
            continue

        (crowd,), (fault,) = crowds, step.faults
        assert Action(Verb.REMOVE, 1.0, crowd) in step.actions
        assert crowd.name not in after.workloads
        assert fault.trouble in (Trouble.STOP, Trouble.FREEZE)
        assert crowd.on in fault.clusters
        (other,) = set(plan.TARGETS) - {crowd.on}
        assert step.undisturbed == {other}
        timed = [action for action in step.actions if action.timed_on == other]
        assert {action.verb for action in timed} == {Verb.CREATE, Verb.ANNOTATE_DELEGATE}
        assert len(timed) == len(step.actions) - 1
        assert all(0 < action.at < fault.seconds for action in step.actions)
        for action in timed:
            assert action.workload is not None
            if action.verb is Verb.ANNOTATE_DELEGATE:
                assert before.workloads[action.workload.name].replicas == BYSTANDERS


@given(st.integers())
def test_faults_are_of_what_there_is_and_end_in_time(seed: int) -> None:
    for step, _before, _after in drawn(seed, 8):
        assert step.faults
        for fault in step.faults:
            known: Sequence[str] = plan.FAULT_PROXIES
            if fault.trouble is Trouble.KILL:
                known = drawing.processes(AGENTS)
            elif fault.trouble is Trouble.STOP:
                known = drawing.API_SERVERS

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


def test_an_exchange_of_secrets_is_about_both_targets() -> None:
    assert Action(Verb.EXCHANGE_SECRET, 1.0, target="c2", seconds=5.0).about == {"c2", "c3"}
    assert Action(Verb.REMOVE_TARGET, 1.0, target="c2").about == {"c2"}


POD_ON_C3 = WantedWorkload("pod-1", WorkloadKind.POD, on="c3")


@pytest.mark.parametrize(
    ("fault", "action", "undisturbed"),
    [
        (Fault(Trouble.STOP, "c2/kube-apiserver", 0.0, 5.0), None, {"c3"}),
        (Fault(Trouble.FREEZE, "c1>c2", 0.0, 5.0), None, {"c3"}),
        (Fault(Trouble.KILL, "c1/agent", 0.0, 5.0), None, set()),
        (Fault(Trouble.SLOW, "c1>c1", 0.0, 5.0), None, set()),
        (
            Fault(Trouble.STOP, "c2/kube-apiserver", 0.0, 5.0),
            Action(Verb.EDIT_TARGET, 1.0, target="c3"),
            set(),
        ),
        (
            Fault(Trouble.STOP, "c2/kube-apiserver", 0.0, 5.0),
            Action(Verb.CREATE, 1.0, POD_ON_C3),
            {"c3"},
        ),
    ],
)
def test_a_target_is_disturbed_by_what_breaks_of_it_or_of_the_source(
    fault: Fault, action: Action | None, undisturbed: set[str]
) -> None:
    assert Step((action,) if action else (), (fault,)).undisturbed == undisturbed


def test_an_outage_is_one_of_an_api_server() -> None:
    assert Fault(Trouble.STOP, "c2/kube-apiserver", 0.0, 5.0).outage == "c2"
    assert Fault(Trouble.KILL, "c2/candidate-scheduler", 0.0, 5.0).outage == ""
    assert Fault(Trouble.FREEZE, "c1>c2", 0.0, 5.0).outage == ""


def test_a_start_is_timed_where_the_pod_must_start() -> None:
    assert Action(Verb.CREATE, 1.0, POD_ON_C3).timed_on == "c3"
    assert Action(Verb.CREATE, 1.0, WantedWorkload("pod-2", WorkloadKind.POD)).timed_on == ""
    assert Action(Verb.REMOVE, 1.0, POD_ON_C3).timed_on == ""
    assert Action(Verb.EDIT_TARGET, 1.0, target="c3").timed_on == ""


def test_what_ends_nothing_touches_nothing() -> None:
    actions = (Action(Verb.ANNOTATE_DELEGATE, 1.0, POD_ON_C3), Action(Verb.REMOVE, 1.0, POD_ON_C3))
    assert Step(actions[:1], ()).touched == frozenset()
    assert Step(actions, ()).touched == {"pod-1"}


@given(st.integers())
def test_a_gang_never_takes_more_pods_than_there_are(seed: int) -> None:
    for _step, _before, after in drawn(seed, 8):
        for workload in after.workloads.values():
            assert workload.gang <= workload.replicas
            assert workload.gang != 1
