"""How the interpreter is set so that an agent with thousands of pods and connections stays small.

Both settings are of the whole process and made once, at the start. Neither changes what the
program does: they say how much is held in reserve.
"""

from __future__ import annotations

import gc
from asyncio import sslproto
from typing import Final

TLS_BUFFER: Final = 128 * 1024
"""Bytes that asyncio keeps for reading on each TLS connection, of its own accord 256 KiB. With
those, 200 idle connections took 55 MiB, with 32 KiB 13 MiB. But a copy through the tunnel took
5.3 s of CPU for a GiB with 32 KiB, and 3.1 s with 128: more is read at once after a pause.
"""
_GC_THRESHOLD: Final = 50_000  # allocations; JSON makes many, and none of it is cyclic


def save() -> None:
    """Make the settings; connections that are open already keep their buffers."""
    gc.set_threshold(_GC_THRESHOLD)
    sslproto.SSLProtocol.max_size = TLS_BUFFER


def settle() -> None:
    """What is there now will stay: the collector need not look at it again."""
    gc.freeze()
