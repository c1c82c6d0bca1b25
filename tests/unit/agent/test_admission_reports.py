"""What the process for admission counts is shown in the agent's metrics, over its restarts."""

from __future__ import annotations

import msgspec
import pytest

from vnode.agent.admission import AdmissionReport
from vnode.agent.admission_reports import AdmissionReports
from vnode.telemetry import metrics, turn_waits


def mutated() -> float:
    return metrics.values_by(metrics.ADMISSIONS, "result")["mutated"]


def cpu() -> float:
    return float(metrics.ADMISSION_CPU._value.get())


def report(count: float, seconds: float) -> bytes:
    found = AdmissionReport({"mutated": count}, 1_800_000_000.0, seconds, 60 << 20)
    return msgspec.json.encode(found)


def test_numbers_of_one_process_after_another_add_up() -> None:
    reports, counted, spent = AdmissionReports(), mutated(), cpu()
    for count, seconds in ((0, 0.5), (7, 1.0), (7, 1.5)):
        reports.take(report(count, seconds))

    assert mutated() == counted + 7
    for count, seconds in ((2, 0.4), (3, 0.9)):  # of the next process
        reports.take(report(count, seconds))

    assert mutated() == counted + 10
    assert abs(cpu() - spent - 2.4) < 1e-6
    assert metrics.values_by(metrics.CERTIFICATE_EXPIRY, "certificate")["webhook"] == 1.8e9


def test_how_long_reviews_wait_is_shown_with_the_waits_of_the_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn_waits, "_elsewhere", {})
    found = AdmissionReport({}, 0.0, 1.0, 0, {"team-a": 2.5})
    AdmissionReports().take(msgspec.json.encode(found))
    for _ in turn_waits.measure():
        pass

    labels = {"work": "admission", "of_namespace": "team-a"}
    assert metrics.REGISTRY.get_sample_value("vnode_turn_wait_seconds", labels) == 2.5
