"""The simulation moves pods, and finds out who moves too many, or ends them too early or late."""

from __future__ import annotations

import pytest

from tests.simulation.policies import PolicyChange, PolicySchedule
from tests.simulation.schedule import TARGETS, Schedule, SimulatedWorkload, WorkloadOwner
from tests.simulation.simulation import ScheduleResult, simulate
from vnode.api.objects import Object
from vnode.placement.moves.under_way import MovesUnderWay
from vnode.planning import failover
from vnode.pods.source import awaited_replacements

PODS = 4


def drained() -> ScheduleResult:
    """Have a Deployment's worth of pods in two targets, of which one is drained after a while."""
    pods = SimulatedWorkload("a", WorkloadOwner.REPLICA_SET, 0.0, count=PODS)
    ample: dict[str, tuple[int, ...]] = dict.fromkeys(TARGETS, (PODS,))
    spec: Object = {"selector": {"matchLabels": {}}, "mode": "Spread"}
    changes = (
        PolicyChange(0.0, "web", spec),
        PolicyChange(20.0, "web", {**spec, "drain": [{"cluster": TARGETS[0]}]}),
    )
    policies = PolicySchedule(changes, calm=True)
    return simulate(Schedule(1, 0.01, ample, (pods,), (), (), policies=policies))


def broken() -> set[str]:
    return {violation.rule for violation in drained().violations}


def test_pods_leave_a_drained_target_one_by_one() -> None:
    outcome = drained()
    assert outcome.violations == ()
    assert (outcome.moves, outcome.pods) == (PODS / 2, PODS + PODS / 2)


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

    monkeypatch.setattr(awaited_replacements, "awaiting", awaiting)
    assert broken() == {rule}
