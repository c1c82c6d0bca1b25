"""Configures the interpreter so that an agent with thousands of pods and connections stays small.

Both settings are of the whole process and made once, at the start. They do not change what the
program does, only how much memory is held in reserve.
"""

from __future__ import annotations

import gc
import os
from asyncio import sslproto
from pathlib import Path
from typing import Final

TLS_BUFFER: Final = 128 * 1024
"""Bytes that asyncio keeps for reading on each TLS connection, by default 256 KiB. With the
default, 200 idle connections took 55 MiB, with 32 KiB 13 MiB. But a copy through the tunnel took
5.3 s of CPU for a GiB with 32 KiB, and 3.1 s with 128: more is read at once after a pause.
"""
_GC_THRESHOLDS: Final = (10_000, 5, 2)
"""Objects more than before at which the youngest are collected, and of how many collections one is
of older ones too. Each Target that ends leaves a thousand objects in cycles, as do errors of
connections, and what is collected at once holds up the event loop: 50,000 objects for 107 ms, and
180,000 of all ages for 216 ms, on a busy machine. Reading 3,000 pods takes as long as with 50,000.
"""


def configure() -> None:
    """Apply the settings; connections that are open already keep their buffers."""
    gc.set_threshold(*_GC_THRESHOLDS)
    sslproto.SSLProtocol.max_size = TLS_BUFFER


def resident() -> int:
    """Return the bytes of memory that the process has, 0 where the system does not say."""
    try:
        with Path("/proc/self/statm").open() as statm:  # it is no file, and read at once
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def freeze() -> None:
    """Freeze all present objects: they will stay, and the collector need not scan them again."""
    gc.freeze()
