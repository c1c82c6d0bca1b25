"""Who writes the audit log down, and where to."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec
import pytest

from vnode.api.errors import ConfigError
from vnode.telemetry import audit, audit_log
from vnode.telemetry.audit_log import AuditQueue, GatheringListener

POD = {"metadata": {"name": "web-0", "namespace": "team-a", "uid": "u1"}}


class Terminal(logging.Handler):
    """Stands for a standard error that nobody reads until `read` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.read = threading.Event()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.read.wait(10)
        self.lines.append(record.getMessage())


def tell() -> None:
    with audit.on_behalf_of(audit.AGENT):
        audit.opened("log", POD, cluster="gpu")


def line(text: str) -> logging.LogRecord:
    return logging.LogRecord("x", logging.INFO, "", 0, text, None, None)


def test_whoever_acts_does_not_wait_for_whoever_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(logging.getLogger(), "handlers", [terminal])
    with audit_log.written_to(audit_log.STDERR):
        for _ in range(100):
            tell()

        assert terminal.lines == []
        terminal.read.set()

    assert terminal.lines == ["open pods/log team-a/web-0 in gpu for Agent vnode"] * 100


def test_the_log_says_how_many_lines_are_lost() -> None:
    waiting = SimpleQueue[Any]()
    queue = AuditQueue(waiting, most=2)
    for number in range(5):
        queue.emit(line(f"line {number}"))

    assert waiting.get().getMessage() == "line 0"
    queue.emit(line("line 5"))
    left = [waiting.get().getMessage() for _ in range(waiting.qsize())]
    assert left == ["line 1", "3 lines are lost: nobody read this log", "line 5"]


class _Later(SimpleQueue[Any]):
    """Has nothing until somebody waits for it."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if self.empty():
            self.put(line("first"))

        return super().get(block, timeout)


def test_lines_that_come_within_a_moment_wake_the_thread_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting, pauses = _Later(), list[float]()
    listener = GatheringListener(waiting)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        waiting.put(line("second"))
        waiting.put(line("third"))

    monkeypatch.setattr(time, "sleep", pause)
    written = [listener.dequeue(True).getMessage() for _ in range(3)]
    assert written == ["first", "second", "third"]
    assert pauses == [audit_log.GATHER]


def test_a_file_has_it_as_json_and_standard_error_has_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "audit.log"
    with audit_log.written_to(str(file)):
        tell()

    (line,) = file.read_text().splitlines()
    assert msgspec.json.decode(line)["object"]["name"] == "web-0"
    assert not caplog.records
    tell()  # the log is closed
    assert len(file.read_text().splitlines()) == 1


def test_it_can_be_turned_off(caplog: pytest.LogCaptureFixture) -> None:
    with audit_log.written_to(audit_log.NOWHERE):
        tell()

    assert not caplog.records


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"auditLog: cannot write .*/nowhere/a: No such file"),
        audit_log.written_to(str(tmp_path / "nowhere" / "a")),
    ):
        pass
