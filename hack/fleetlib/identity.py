"""Distinguishes a process of ours from a later one with the same pid."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

from vnode.kube import linux_calls


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A pid, the clock tick since boot at which it started, and the boot: unique for all time."""

    pid: int
    started: int
    boot: str

    @property
    def alive(self) -> bool:
        """Tell whether this very process still runs; a zombie does not."""
        return self.boot == boot() and _stat(self.pid) == self.started

    def send(self, number: signal.Signals) -> bool:
        """Signal the process and its children; return False if it has ended.

        Every process of a fleet leads a group of its own, so the group is what it started itself.
        """
        if not self.alive:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
            return True
        return False

    def wait(self, seconds: float) -> bool:
        """Wait until the process ends, at most so long; return whether it has."""
        try:
            descriptor = linux_calls.process_descriptor(self.pid)
        except ProcessLookupError:
            return True
        try:
            if self.alive:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                poll.poll(seconds * 1000)
        finally:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return not self.alive


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def of(pid: int) -> ProcessIdentity:
    """Return the identity of a process that was just started."""
    started = _stat(pid)
    return ProcessIdentity(pid, -1 if started is None else started, boot())


def _stat(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return start_tick(text)


def start_tick(stat: str) -> int | None:
    """Return the start time in the text of `/proc/PID/stat`; None for a zombie.

    The command's name, in parentheses, may itself hold spaces and parentheses.
    """
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
