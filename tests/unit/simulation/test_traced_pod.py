"""What the agents of source and target tell of one pod is one trace; whole agents, in memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.recorded_spans import RecordedSpans
from tests.simulation import agents
from tests.simulation.schedule import Schedule, SimulatedWorkload, WorkloadOwner
from tests.simulation.simulation import simulate
from vnode.agent.shared import AgentOptions
from vnode.telemetry import spans
from vnode.telemetry.spans import Span

POD = SimulatedWorkload("u0", WorkloadOwner.USER, 0.0)
SCHEDULE = Schedule(1, 0.0002, {"c2": (4,)}, (POD,), (), ())


def traced(monkeypatch: pytest.MonkeyPatch, schedule: Schedule, ratio: float = 1.0) -> list[Span]:
    """Return what agents tell in a schedule."""
    sender = RecordedSpans(ratio)

    def options(namespace: str, address: str, *others: object) -> AgentOptions:
        return replace(AgentOptions(namespace, address, *others), spans=sender)  # type: ignore[arg-type]

    monkeypatch.setattr(agents, "AgentOptions", options)
    assert not simulate(schedule).violations
    return sender.told


def test_a_pods_way_is_one_trace_of_both_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    told = traced(monkeypatch, SCHEDULE)

    by_name = {span.name: span for span in told}
    assert len({span.trace for span in told}) == 1
    count = Counter(span.name for span in told)
    assert count.pop("schedule") >= 1  # a cycle that no target answered in time is told, too
    assert set(count.values()) == {1}
    assert sorted(count) == [
        "await source",
        "bind",
        "bind delegate",
        "candidate",
        "create delegate",
        "delegate",
        "end",
        "end delegate",
        "pod",
        "reserve",
        "run",
        "start",
        "start containers",
    ]
    names = {span.id: span.name for span in told}
    (root,) = (span for span in told if not span.parent)
    assert root.name == "pod"
    assert root.trace == spans.trace_id(str(root.attributes["k8s.pod.uid"]))
    assert {names[span.parent] for span in told if span.parent} == {"pod", "candidate", "delegate"}
    assert names[by_name["delegate"].parent] == "candidate"
    assert names[by_name["reserve"].parent] == "delegate"
    assert all(span.start <= span.end for span in told)
    order = ("schedule", "bind", "candidate", "start", "run")
    ends = [by_name[name].end for name in order]
    assert ends == sorted(ends)
    assert by_name["delegate"].is_remote


def test_pods_that_are_not_chosen_are_told_by_neither_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert traced(monkeypatch, SCHEDULE, ratio=1e-12) == []
