"""How many lines of the audit log an ordinary pod costs, and on whose behalf they are.

Schedules of the simulation fail when something is changed on behalf of nobody known
(`tests/simulation/simulation.py`); this shows that they would.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

import pytest

from tests.memory_streams import MemoryStreams
from tests.simulation.schedule import Schedule, SimulatedWorkload, WorkloadOwner
from tests.simulation.simulation import simulate
from vnode.telemetry import audit
from vnode.telemetry.audit import AuditedObject, Subject

POD = SimulatedWorkload("u0", WorkloadOwner.USER, 0.0)
SCHEDULE = Schedule(1, 0.0002, {"c2": (4,)}, (POD,), (), ())
_EXPECTED = [
    ("create", "podchaperons", "default/c2", "Pod"),
    ("create", "pods", "c2", "PodChaperon"),
    ("create", "pods/binding", "c1", "Pod"),
    ("patch", "podchaperons", "default/c2", "Pod"),
    ("create", "pods/binding", "c2", "PodChaperon"),
    ("delete", "podchaperons", "default/c2", "Pod"),
    ("delete", "pods", "c2", "PodChaperon"),
    ("delete", "pods", "c1", "Pod"),
]


class Lines(logging.Handler):
    """Keeps what it is told of, as (verb, resource, cluster, kind of the subject)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        told: dict[str, Any] = vars(record)
        obj, behalf = told["object"], told["onBehalfOf"]
        assert isinstance(obj, AuditedObject)
        assert isinstance(behalf, Subject)
        assert behalf.uid or behalf.kind in ("Agent", "Target")
        resource = f"{obj.resource}/{obj.subresource}".rstrip("/")
        self.found.append((told["verb"], resource, told["cluster"], behalf.kind))


def test_an_ordinary_pod_costs_five_lines_to_start_and_three_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryStreams, "is_down", True)  # what a stream says is no line
    lines, log = Lines(), logging.getLogger(audit.NAME)
    log.addHandler(lines)
    try:
        assert not simulate(SCHEDULE).violations
    finally:
        log.removeHandler(lines)

    # A watch may tell of a binding before its answer is there: then the next line comes first.
    told = [line for line in lines.found if line[3] in ("Pod", "PodChaperon")]
    assert sorted(told) == sorted(_EXPECTED)


def test_a_change_on_behalf_of_nobody_known_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "on_behalf_of", lambda _subject: nullcontext())
    found = simulate(SCHEDULE).violations
    assert any("for nobody known" in each.what for each in found)
