"""Programs of a fleet start in sessions of their own, whatever the interpreter was built for."""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import NoReturn

import pytest

from hack.fleetlib import processes, state
from hack.fleetlib.errors import FleetError
from hack.fleetlib.state import Cluster, Process, State
from tests import kit

TELL = """
import json, os, sys
print(json.dumps([os.getpid(), os.getsid(0), sys.stdin.read(), os.environ["ROLE"]]))
print("said", file=sys.stderr)
"""


@pytest.fixture
def directory(tmp_path):
    state.save(
        tmp_path, State("loopback", 3, "/tmp/claim", {"c1": Cluster("c1", 1, "127.0.0.1", None)})
    )
    return tmp_path


def test_a_program_has_a_session_and_a_log_of_its_own(directory, monkeypatch):
    def lacking(*_words: object, setsid: bool = False, **_more: object) -> NoReturn:
        raise NotImplementedError("posix_spawn: setsid unavailable on this platform")

    monkeypatch.setattr(os, "posix_spawn", lacking)
    log = directory / "log"
    log.write_text("before\n")
    argv = [sys.executable, "-c", TELL]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        processes.start(directory, "c1", "teller", Process(argv, str(log), {"ROLE": "teller"}))

    known = state.load(directory).process("c1", "teller").identity
    assert known is not None
    assert known.wait(kit.PATIENCE)
    before, told, said = log.read_text().splitlines()
    assert (before, said) == ("before", "said")
    assert json.loads(told) == [known.pid, known.pid, "", "teller"]
    assert os.getsid(0) != known.pid


def test_a_program_that_is_missing_is_named(directory):
    missing = Process(["no-such-program"], str(directory / "log"))
    with pytest.raises(FleetError, match="no-such-program is not on PATH"):
        processes.start(directory, "c1", "missing", missing)
