"""Who holds a lease, and whether that process has ended.

An agent that was killed did not release its lease, and whoever starts in its place would wait for
its end. In a pod it need not: the holder is the pod, whose container the kubelet starts only after
the one before has ended. Anywhere else the holder names the process, and, by the boot of its kernel
and its table of processes, where a process of that number would be: a successor there asks the
kernel. From anywhere else nothing can be told, and a lease has to run out.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_PROCESSES: Final = Path("/proc/self/ns/pid")


def own(environment: Mapping[str, str]) -> str:
    """What this process calls itself in a lease: `POD_1`, or `HOST_PLACE_PID`."""
    if pod := environment.get("POD_NAME"):
        return f"{pod}_{os.getpid()}"

    return f"{socket.gethostname()}_{_place()}_{os.getpid()}"


def has_ended(holder: str) -> bool:
    """The holder was a process of this machine and is none any more. False if in doubt."""
    before, _, number = holder.rpartition("_")
    place = _place()
    if not place or before.rpartition("_")[2] != place or not number.isdecimal():
        return False

    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it may be somebody else's

    return _is_zombie(number)


def _is_zombie(number: str) -> bool:
    """It has ended, and whoever started it has not taken note."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False

    return state in ("Z", "X")


def _place() -> str:
    """The same for all processes that see each other, and for no others; "" if not to be had."""
    try:
        what = f"{_BOOT.read_text().strip()} {_PROCESSES.readlink()}"
    except OSError:
        return ""

    return hashlib.sha256(what.encode()).hexdigest()[:12]
