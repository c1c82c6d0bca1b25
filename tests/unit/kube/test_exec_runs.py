"""A command that gives credentials is bounded in time, output and number, whatever it does."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from vnode.api.errors import Unreachable
from vnode.kube import exec_plugins, exec_runs, linux_calls
from vnode.kube.exec_runs import ExecRunner, Execution, Lane


def script(text: str, *, timeout: float = 10, **environment: str) -> Execution:
    return Execution("/bin/sh", ("-c", text), {"PATH": os.environ["PATH"], **environment}, timeout)


async def test_what_a_command_prints_is_returned_and_it_sees_its_environment_alone(monkeypatch):
    monkeypatch.setenv("OF_THE_AGENT", "hidden")
    output = await exec_runs.run(script("echo $GIVEN; echo ${OF_THE_AGENT:-none}", GIVEN="yes"))
    assert output == b"yes\nnone\n"


async def test_it_has_no_input_and_no_terminal():
    text = "cat; (: </dev/tty) 2>/dev/null || echo no terminal"
    assert await exec_runs.run(script(text)) == b"no terminal\n"


async def test_one_that_hangs_ends_in_time_with_all_that_it_has_started(tmp_path: Path):
    written = tmp_path / "pids"
    text = f"sleep 300 & echo $! > {written}; echo $$ >> {written}; wait"
    started = time.monotonic()
    with pytest.raises(Unreachable, match="no answer within 1 s"):
        await exec_runs.run(script(text, timeout=1))

    assert time.monotonic() - started < 8
    for pid in written.read_text().split():
        await gone(int(pid))


async def test_nobody_but_asyncio_takes_the_exit_code_of_one_that_hangs(monkeypatch):
    """Else asyncio warns of an unknown process, in one of a hundred runs."""
    polled = []
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: polled.append(process.pid))
    with pytest.raises(Unreachable, match="no answer"):
        await exec_runs.run(script("exec sleep 300", timeout=0.1))

    assert not polled


async def gone(pid: int) -> None:
    """Wait until a process has ended, if perhaps not been waited for."""
    try:
        process = linux_calls.process_descriptor(pid)
    except ProcessLookupError:
        return

    try:
        ended, _, _ = await asyncio.to_thread(select.select, [process], [], [], 10)
        assert ended
    finally:
        os.close(process)


async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path):
    written = tmp_path / "pid"
    text = f"sleep 300 >/dev/null 2>&1 & echo $! > {written}; echo done"
    assert await exec_runs.run(script(text)) == b"done\n"
    await gone(int(written.read_text()))


@pytest.mark.parametrize(("seconds", "then"), [(3, "sleep 300"), (60, "echo done")])
async def test_what_has_a_session_of_its_own_ends_with_it_too(
    tmp_path: Path, seconds: float, then: str
):
    written, begun = tmp_path / "pid", tmp_path / "begun"
    os.mkfifo(begun)
    inner = f"echo $$ > {written}; echo > {begun}; exec sleep 300"
    text = f"(setsid sh -c '{inner}' >/dev/null 2>&1 &); read _ < {begun}; {then}"
    with suppress(Unreachable):
        await exec_runs.run(script(text, timeout=seconds))

    await gone(int(written.read_text()))


def test_who_is_handed_orphans_keeps_none_of_them_as_the_first_process_of_a_container():
    ran = subprocess.run(
        [sys.executable, "-c", HANDED_ORPHANS], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == "no child is left\n", ran.stderr


HANDED_ORPHANS = """
import asyncio, ctypes, os
from vnode.kube import exec_runs
from vnode.kube.exec_runs import Execution

async def run():
    leaves = "sleep 9 >/dev/null 2>&1 & setsid sleep 9 >/dev/null 2>&1 & echo done"
    for _time in range(2):
        await exec_runs.run(Execution("/bin/sh", ("-c", leaves), dict(os.environ)))

    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("no child is left")

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
asyncio.run(run())
"""


async def test_one_that_is_cancelled_ends(tmp_path: Path):
    written = tmp_path / "pid"
    os.mkfifo(written)
    task = asyncio.create_task(exec_runs.run(script(f"echo $$ > {written}; exec sleep 300")))
    pid = int(await asyncio.to_thread(written.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await gone(pid)


async def test_one_that_prints_without_end_is_stopped():
    with pytest.raises(Unreachable, match="more than 65536 bytes"):
        await exec_runs.run(script("yes"))


async def test_errors_without_end_are_no_reason_to_fail():
    text = "head -c 1000000 /dev/zero >&2; echo fine"
    assert await exec_runs.run(script(text)) == b"fine\n"


async def test_a_failure_is_told_with_the_last_line_and_no_secret():
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJlIGhlcmU"
    text = f"echo first >&2; printf 'denied\\033[31m {token} here\\n\\n' >&2; exit 3"
    with pytest.raises(Unreachable, match=r"failed \(exit 3\): denied") as raised:
        await exec_runs.run(script(text))

    written = str(raised.value)
    assert token not in written
    assert "first" not in written
    assert written.isprintable()


@pytest.mark.parametrize("command", ["/none/such", "/tmp", "a\0b"])
async def test_one_that_cannot_be_started_is_told(command):
    with pytest.raises(Unreachable, match="cannot be started"):
        await exec_runs.run(Execution(command, (), {}))


async def test_targets_of_one_command_share_its_places(monkeypatch):
    """Each kubeconfig has credentials of its own, and the agent starts what they run."""
    running = most = 0

    async def run(_execution):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        raise Unreachable("it gives nothing")

    monkeypatch.setattr(exec_runs, "run", run)
    plugin = {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1"}
    made = [exec_plugins.allowed(plugin, {}, {"aws"}, "a setting") for _number in range(20)]
    await asyncio.gather(*(each.refresh() for each in made))
    assert most == 4
    assert all("gives nothing" in each.failure for each in made)


@pytest.mark.parametrize(
    ("command", "lane"),
    [("/bin/sh", Lane.FAILING), ("/bin/sh", Lane.FIRST), (sys.executable, Lane.RENEWING)],
)
async def test_commands_that_hang_take_no_place_of_one_that_works(command, lane):
    runner = ExecRunner()
    environment = {"PATH": os.environ["PATH"]}
    hang = Execution("/bin/sh", ("-c", "sleep 300"), environment, 300)
    hanging = [asyncio.create_task(runner.run(hang, lane=lane)) for _number in range(9)]
    words = ("-c", "echo works" if command == "/bin/sh" else "print('works')")
    working = Execution(command, words, environment)
    async with asyncio.timeout(30):
        assert await runner.run(working, lane=Lane.RENEWING) == b"works\n"

    for task in hanging:
        task.cancel()

    await asyncio.wait(hanging)
