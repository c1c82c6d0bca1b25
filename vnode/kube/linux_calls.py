"""System calls of Linux that some interpreters lack, though the kernel has them.

An interpreter that is built for any Linux, as uv's are, is built with headers of an old one: its
`os` has neither of these. The kernel has had the first since 3.17 and the second since 5.3.

Standard library only, because hack/fleet runs before anything is installed.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

_PIDFD_OPEN: Final = 434  # the same for all architectures
_CLOSE_ON_EXEC: Final = 1  # MFD_CLOEXEC


def memory_file(name: str) -> int:
    """Open an empty file that is in memory only; return its descriptor."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    return _descriptor("memfd_create", name.encode(), ctypes.c_uint(_CLOSE_ON_EXEC))


def process_descriptor(pid: int) -> int:
    """Return a descriptor that can be read from once the process has ended.

    ProcessLookupError if there is no such process.
    """
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    numbers = (_PIDFD_OPEN, pid, 0)
    return _descriptor("syscall", *(ctypes.c_long(number) for number in numbers))


def _descriptor(function: str, *words: object) -> int:
    """Call a function of the C library that returns a descriptor; OSError as `os` would."""
    library = ctypes.CDLL(None, use_errno=True)
    found = int(library[function](*words))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found
