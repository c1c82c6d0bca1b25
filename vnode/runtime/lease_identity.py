"""Names the holder of a lease, and tells whether that process has ended.

An agent that was killed did not release its lease, and its successor would wait until it expires.
In a pod it need not: the holder is the pod, whose container the kubelet starts only after the
previous one has ended. Outside of pods the holder names the process, and, by boot id and PID
namespace, where its number is valid: a successor there asks the kernel. A successor anywhere else
cannot tell, and the lease has to expire.
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
    """Return the identity of this process in a lease: `POD_1`, or `HOST_NAMESPACE_PID`."""
    if pod := environment.get("POD_NAME"):
        return f"{pod}_{os.getpid()}"

    return f"{socket.gethostname()}_{_pid_namespace()}_{os.getpid()}"


def has_ended(holder: str) -> bool:
    """Tell whether the holder was a process of this machine that has ended. False if in doubt."""
    before, _, number = holder.rpartition("_")
    namespace = _pid_namespace()
    if not namespace or before.rpartition("_")[2] != namespace or not number.isdecimal():
        return False

    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it may belong to another user

    return _is_zombie(number)


def _is_zombie(number: str) -> bool:
    """Tell whether a process has ended and its parent has not waited for it."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False

    return state in ("Z", "X")


def _pid_namespace() -> str:
    """Return a hash of boot id and PID namespace, shared by the processes there; "" if unknown."""
    try:
        text = f"{_BOOT.read_text().strip()} {_PROCESSES.readlink()}"
    except OSError:
        return ""

    return hashlib.sha256(text.encode()).hexdigest()[:12]
