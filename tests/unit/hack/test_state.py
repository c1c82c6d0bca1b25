"""The state file of a fleet, and which process a pid in it really is."""

from __future__ import annotations

import os
import signal
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.fleetlib import identity, processes, state
from hack.fleetlib.errors import FleetError
from hack.fleetlib.identity import ProcessIdentity
from hack.fleetlib.state import Cluster, Process, State


def fleet_with(*names: str) -> State:
    clusters = {name: Cluster(name, i, f"127.201.0.{i}", None) for i, name in enumerate(names)}
    return State("loopback", 3, "/tmp/claim", clusters)


def test_a_state_survives_the_file(tmp_path):
    fleet = fleet_with("c1", "c2")
    known = Process(["sleep", "1"], "/l", {"A": "b"}, ProcessIdentity(1, 2, "boot"))
    fleet.clusters["c1"].processes["etcd"] = known
    state.save(tmp_path, fleet)
    assert state.load(tmp_path) == fleet


def test_a_directory_without_a_fleet_names_the_cure(tmp_path):
    with pytest.raises(FleetError, match="hack/fleet up"):
        state.load(tmp_path)

    with (
        pytest.raises(FleetError, match="hack/fleet up"),
        state.changing(tmp_path / "gone"),
    ):
        pass


def test_unknown_clusters_and_processes_are_refused_with_the_known_ones():
    fleet = fleet_with("c1", "c2")
    with pytest.raises(FleetError, match="it has c1, c2"):
        fleet.cluster("c3")
    with pytest.raises(FleetError, match="c1 has no process 'agent'"):
        fleet.process("c1", "agent")


def test_changes_at_the_same_time_are_all_kept(tmp_path):
    state.save(tmp_path, fleet_with("c1"))

    def add(number: int) -> None:
        with state.changing(tmp_path) as fleet:
            fleet.clusters["c1"].processes[f"p{number}"] = Process([], "")

    threads = [threading.Thread(target=add, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(state.load(tmp_path).clusters["c1"].processes) == 20


def test_a_change_that_fails_changes_nothing(tmp_path):
    state.save(tmp_path, fleet_with("c1"))
    with pytest.raises(ZeroDivisionError), state.changing(tmp_path) as fleet:
        fleet.slot = 1 // 0
    assert state.load(tmp_path).slot == 3


def test_this_process_is_itself_and_nobody_else():
    me = identity.of(os.getpid())
    assert me.alive
    assert not ProcessIdentity(me.pid, me.started + 1, me.boot).alive
    assert not ProcessIdentity(me.pid, me.started, "another boot").alive


def test_a_process_that_took_over_a_pid_is_not_signalled():
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        real = identity.of(stranger.pid)
        earlier = ProcessIdentity(stranger.pid, real.started - 1, real.boot)
        assert not earlier.send(signal.SIGKILL)
        assert earlier.wait(0)
        assert stranger.poll() is None
        assert real.send(signal.SIGKILL)


@given(st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=15))
def test_the_start_time_is_read_whatever_the_program_is_called(name):
    rest = " ".join(str(n) for n in range(1, 50))
    assert identity.start_tick(f"12 ({name}) S {rest}\n") == 19
    assert identity.start_tick(f"12 ({name}) Z {rest}\n") is None


def start(folder, *argv: str) -> Process:
    state.save(folder, fleet_with("c1"))
    processes.start(folder, "c1", "p", Process(list(argv), str(folder / "log")))
    return state.load(folder).process("c1", "p")


def test_a_process_is_started_noted_and_stopped(tmp_path):
    known = start(tmp_path, "sh", "-c", "echo here; sleep 60")
    assert known.alive
    with pytest.raises(FleetError, match="already runs"):
        processes.start(tmp_path, "c1", "p")
    processes.stop(tmp_path, "c1", "p", signal.SIGTERM)
    assert not known.alive
    processes.start(tmp_path, "c1", "p")
    assert state.load(tmp_path).process("c1", "p").alive
    processes.stop(tmp_path, "c1", "p", signal.SIGKILL)


def test_a_process_that_will_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "GRACE", 0.2)
    known = start(tmp_path, "sh", "-c", "trap '' TERM; echo ready; sleep 60 & wait; sleep 60")
    processes.stop(tmp_path, "c1", "p", signal.SIGTERM)
    assert not known.alive


def test_a_frozen_process_ends_too(tmp_path):
    known = start(tmp_path, "sleep", "60")
    assert known.identity
    known.identity.send(signal.SIGSTOP)
    processes.end([known])
    assert not known.alive


def test_a_program_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FleetError, match="not on PATH"):
        start(tmp_path, "no-such-program")


def test_nothing_starts_in_a_fleet_that_is_being_taken_down(tmp_path):
    fleet = fleet_with("c1")
    fleet.ending = True
    state.save(tmp_path, fleet)
    with pytest.raises(FleetError, match="being taken down"):
        processes.start(tmp_path, "c1", "p", Process(["sleep", "60"], str(tmp_path / "log")))


def test_the_end_of_a_log_is_shown(tmp_path):
    (tmp_path / "log").write_text("\n".join(str(n) for n in range(100)))
    assert processes.tail(str(tmp_path / "log"), 2) == "98\n99"
    assert processes.tail(str(tmp_path / "absent")) == "(no log)"
