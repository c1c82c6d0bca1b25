"""Tables, ages and documents look as kubectl's do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import kinds
from vnode.cli import tables, terminal
from vnode.cli.fitting import TableLayout
from vnode.cli.tables import Column
from vnode.insight import status_text

COLUMNS = (
    Column("NAME", lambda row: row[0]),
    Column("STATUS", lambda row: row[1]),
    Column("MORE", lambda row: "x", wide=True),
)


def test_columns_are_as_wide_as_their_widest_cell_and_empty_cells_say_so() -> None:
    rows = [("long-name", "Ready"), ("a", "")]
    assert tables.lines(COLUMNS, rows) == [
        "NAME        STATUS",
        "long-name   Ready",
        "a           <none>",
    ]
    assert tables.lines(COLUMNS, rows, wide=True)[0] == "NAME        STATUS   MORE"


def test_a_watch_keeps_the_columns_of_its_first_table() -> None:
    layout = TableLayout()
    tables.lines(COLUMNS, [("long-name", "Ready")], layout=layout)
    assert tables.lines(COLUMNS, [("a", "b")], heading=False, layout=layout) == ["a           b"]


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(seconds=-3), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=5, seconds=10), "5m10s"),
        (timedelta(minutes=8), "8m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3, minutes=12), "3h12m"),
        (timedelta(hours=20), "20h"),
        (timedelta(days=2, hours=4), "2d4h"),
        (timedelta(days=30), "30d"),
        (timedelta(days=760), "2y30d"),
    ],
)
def test_durations_are_written_as_kubectl_does(length: timedelta, text: str) -> None:
    assert status_text.duration(length) == text


@given(st.timedeltas(min_value=timedelta(0)))
def test_any_duration_is_short(length: timedelta) -> None:
    assert len(status_text.duration(length)) <= 12


def test_an_age_that_is_no_time_is_unknown() -> None:
    assert status_text.age("yesterday", datetime.now(UTC)) == "<unknown>"


def test_references_are_what_kubectl_takes_back() -> None:
    obj = {"metadata": {"name": "a", "namespace": "b"}}
    assert tables.reference(kinds.NODES, obj) == "node/a"
    assert tables.reference(kinds.TARGETS, obj) == "target.multicluster.admiralty.io/a"


def test_pipes_get_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.styled("x", terminal.GOOD) == "x"
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.styled("x", terminal.GOOD) == "\x1b[32mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.styled("x", terminal.GOOD) == "x"


def _pod(**status: object) -> dict[str, object]:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    return {"metadata": {"name": "p"}, "spec": spec, "status": status}


def test_the_status_of_a_pod_is_what_kubectl_says() -> None:
    running = {"name": "a", "ready": True, "restartCount": 2, "state": {"running": {}}}
    waiting = {"name": "b", "ready": False, "state": {"waiting": {"reason": "ErrImagePull"}}}
    pod = _pod(phase="Pending", containerStatuses=[running, waiting])
    assert (status_text.pod_status(pod), status_text.ready(pod), status_text.restarts(pod)) == (
        "ErrImagePull",
        "1/2",
        "2",
    )
    assert status_text.pod_status(_pod(phase="Running", containerStatuses=[running])) == "Running"
    assert status_text.pod_status(_pod(phase="Failed", reason="Evicted")) == "Evicted"
    assert (
        status_text.pod_status(_pod(phase="Pending", initContainerStatuses=[waiting]))
        == "Init:ErrImagePull"
    )
    assert status_text.pod_status(_pod(initContainerStatuses=[running])) == "Init:0/1"
    gated = _pod(phase="Pending")
    gated["spec"] = {"schedulingGates": [{"name": "x"}]}
    assert status_text.pod_status(gated) == "SchedulingGated"
    assert status_text.pod_status({"metadata": {"deletionTimestamp": "now"}}) == "Terminating"
