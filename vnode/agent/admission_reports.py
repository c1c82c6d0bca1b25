"""Shows in the agent's metrics what the process for admission counts."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from vnode.agent.admission import AdmissionReport
from vnode.telemetry import metrics, turn_waits
from vnode.webhook import turns

_NOTHING = AdmissionReport({}, 0.0, 0.0, 0)
_decoder = msgspec.json.Decoder(AdmissionReport)


class AdmissionReports:
    """Takes the reports of one process after another: each counts from zero."""

    def __init__(self) -> None:
        self._last = _NOTHING

    def take(self, line: bytes) -> None:
        """Take one report."""
        report = _decoder.decode(line)
        last = self._last if report.cpu_seconds >= self._last.cpu_seconds else _NOTHING
        for result, count in report.admissions.items():
            metrics.ADMISSIONS.labels(result).inc(_growth(result, count, last.admissions))

        metrics.ADMISSION_CPU.inc(report.cpu_seconds - last.cpu_seconds)
        metrics.ADMISSION_MEMORY.set(report.resident_bytes)
        metrics.CERTIFICATE_EXPIRY.labels("webhook").set(report.certificate_ends)
        turn_waits.take(turns.WORK, report.waits)
        self._last = report


def _growth(result: str, count: float, before: Mapping[str, float]) -> float:
    return max(0.0, count - before.get(result, 0.0))
