"""The simulation moves pods, and finds out who moves too many, or ends them too early or late."""

from __future__ import annotations

import pytest

from tests.simulation.policies import PolicyChange, PolicySchedule
from tests.simulation.schedule import (
    SOURCE,
    TARGETS,
    ClusterFault,
    ClusterTrouble,
    PodAction,
    PodVerb,
    Schedule,
    SimulatedWorkload,
    WorkloadOwner,
)
from tests.simulation.simulation import ScheduleResult, simulate
from vnode.api.objects import Object
from vnode.placement.moves.under_way import MovesUnderWay
from vnode.planning import failover
from vnode.planning.deleted_replicas import DeletedReplica
from vnode.pods.source import replacement_rounds

PODS = 4


def drained(
    owner: WorkloadOwner = WorkloadOwner.REPLICA_SET,
    *,
    faults: tuple[ClusterFault, ...] = (),
    actions: tuple[PodAction, ...] = (),
    farewell: float = 1.0,
) -> ScheduleResult:
    """Have a workload's worth of pods in two targets, of which one is drained after a while."""
    pods = SimulatedWorkload("a", owner, 0.0, count=PODS, farewell=farewell)
    ample: dict[str, tuple[int, ...]] = dict.fromkeys(TARGETS, (2 * PODS,))
    spec: Object = {"selector": {"matchLabels": {}}, "mode": "Spread"}
    changes = (
        PolicyChange(0.0, "web", spec),
        PolicyChange(20.0, "web", {**spec, "drain": [{"cluster": TARGETS[0]}]}),
    )
    policies = PolicySchedule(changes, calm=True)
    return simulate(Schedule(1, 0.01, ample, (pods,), actions, faults, policies=policies))


def broken() -> set[str]:
    return {violation.rule for violation in drained().violations}


def test_pods_leave_a_drained_target_one_by_one() -> None:
    outcome = drained()
    assert outcome.violations == ()
    assert (outcome.moves, outcome.pods) == (PODS / 2, PODS + PODS / 2)


@pytest.mark.parametrize("moment", [21.1, 21.2, 21.3])
def test_a_new_leader_moves_no_pod_of_a_stateful_set_while_another_one_ends(moment: float) -> None:
    term = ClusterFault(ClusterTrouble.NEW_TERM, SOURCE, moment)
    outcome = drained(WorkloadOwner.STATEFUL_SET, faults=(term,))
    assert outcome.violations == ()
    assert outcome.moves == PODS / 2


def test_a_mover_that_moves_a_pod_while_another_one_of_a_stateful_set_ends_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ends_early() -> ScheduleResult:
        deletion = PodAction(PodVerb.DELETE, 17.0, 0)
        return drained(WorkloadOwner.STATEFUL_SET, actions=(deletion,), farewell=10.0)

    assert ends_early().violations == ()
    monkeypatch.setattr(DeletedReplica, "is_awaited", lambda *_: False)
    assert {each.rule for each in ends_early().violations} == {"moves wait for pods that start"}


def test_a_mover_that_forgets_what_is_under_way_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MovesUnderWay, "__len__", lambda _self: 0)
    monkeypatch.setattr(MovesUnderWay, "__bool__", lambda self: bool(self.moves), raising=False)
    assert broken() == {"moves keep to maxConcurrent"}


@pytest.mark.parametrize(
    ("waits", "rule"),
    [
        (False, "a moved pod runs on until its replacement is ready"),
        (True, "a moved pod ends when its replacement is ready"),
    ],
)
def test_a_moved_pod_that_ends_too_early_or_late_is_found_out(
    monkeypatch: pytest.MonkeyPatch, waits: bool, rule: str
) -> None:
    def awaiting(
        ending: list[failover.EndingPod], _living: object, _now: float
    ) -> tuple[frozenset[str], float | None]:
        return (frozenset(pod.uid for pod in ending), 60.0) if waits else (frozenset(), None)

    monkeypatch.setattr(replacement_rounds, "awaiting", awaiting)
    assert broken() == {rule}
