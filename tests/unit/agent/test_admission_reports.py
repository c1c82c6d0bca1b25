"""What the process for admission counts is shown in the agent's metrics, over its restarts."""

from __future__ import annotations

import msgspec

from vnode.agent.admission import AdmissionReport
from vnode.agent.admission_reports import AdmissionReports
from vnode.telemetry import metrics


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
