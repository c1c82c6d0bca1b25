"""Ends what a command has left behind, and collects the exit codes that nobody else asks for.

A process that was started by a command has its environment, with a mark in it, also in a session of
its own. One that changes session and environment is not found. In a container the agent is the
first process: the kernel hands orphans to it, which stay in the table of processes until their exit
codes are asked for. Where there is no /proc, as on macOS, nothing is found.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from vnode.kube import linux_calls

MARK: Final = "VNODE_EXEC_RUN"
"""The variable by which the processes of a run are known."""

_PROC: Final = Path("/proc")
_ROUNDS: Final = 5  # looks, while processes start others before they are ended
_GOING: Final = 1000  # milliseconds for processes that were killed to be gone


def end(mark: str, session: int) -> None:
    """End and reap the processes of a run whose command, the leader of that session, is gone.

    Blocks for some milliseconds.
    """
    for _round in range(_ROUNDS):
        found = list(_find(f"{MARK}={mark}".encode(), session))
        for pid in found:
            _end(pid)

        if not found:
            break


def _find(variable: bytes, session: int) -> Iterator[int]:
    """Yield processes with that variable, and orphans of the session that were handed to us."""
    names = os.listdir(_PROC) if _PROC.is_dir() else ()
    for pid in map(int, filter(str.isdecimal, names)):
        with suppress(OSError, ValueError, IndexError):  # it has gone, or is another user's
            stat = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
            state, parent, own_session = stat[0], int(stat[1]), int(stat[3])
            is_handed = parent == os.getpid() and own_session == session and pid != session
            is_marked = state != b"Z" and variable in _environment(pid)
            if is_handed or is_marked:
                yield pid


def _environment(pid: int) -> list[bytes]:
    return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")


def _end(pid: int) -> None:
    """Kill a process, wait until it is gone, and reap it if it is a child of ours."""
    with suppress(OSError):
        process = linux_calls.process_descriptor(pid)
        try:
            os.kill(pid, signal.SIGKILL)
            poll = select.poll()
            poll.register(process, select.POLLIN)
            poll.poll(_GOING)
        finally:
            os.close(process)

    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
