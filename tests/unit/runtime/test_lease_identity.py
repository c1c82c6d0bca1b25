"""Who holds a lease, and whether that process has ended: asked of the kernel itself."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from vnode.runtime import lease_identity


def _ended(environment):
    """Return the name under which a process that has ended since would hold a lease."""
    code = (
        "import os; from vnode.runtime import lease_identity; print(lease_identity.own(os.environ))"
    )
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, env={**os.environ, **environment}, text=True).strip()


def test_a_process_of_this_machine_that_has_ended_is_known_to_have_ended():
    assert lease_identity.has_ended(_ended({"POD_NAME": ""}))


def test_a_process_of_which_nobody_took_note_that_it_ended_has_ended():
    process = subprocess.Popen([sys.executable, "-c", ""])
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        place = lease_identity.own({}).rpartition("_")[0]
        assert lease_identity.has_ended(f"{place}_{process.pid}")
    finally:
        process.wait()


def test_a_process_that_runs_has_not_ended():
    assert not lease_identity.has_ended(lease_identity.own({}))


def test_a_pod_is_told_by_its_name_alone():
    """Its number means nothing here: in each container it is 1."""
    assert not lease_identity.has_ended(_ended({"POD_NAME": "agent-x"}))
    assert lease_identity.own({"POD_NAME": "agent-x"}) == f"agent-x_{os.getpid()}"


@pytest.mark.parametrize("change", ["x", "", "_1_2"])
def test_of_another_machine_nothing_is_told(change):
    host, _place, pid = _ended({"POD_NAME": ""}).rsplit("_", 2)
    assert not lease_identity.has_ended(f"{host}_0123456789ab_{pid}{change}")


@pytest.mark.parametrize("holder", ["", "_", "me", "a_b_c", "a_b_99999999999999999999"])
def test_what_is_no_holder_of_ours_has_not_ended(holder):
    assert not lease_identity.has_ended(holder)


def test_a_number_that_no_process_can_have_has_not_ended():
    place = lease_identity.own({}).rpartition("_")[0]
    assert not lease_identity.has_ended(f"{place}_99999999999999999999")
