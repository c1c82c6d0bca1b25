"""Configures the interpreter so that an agent with thousands of pods and connections stays small.

The settings are of the whole process and made once, at the start. They do not change what the
program does, only how much memory is held in reserve. What a burst, or an attack, has taken goes
back to the system afterwards: large blocks at once, the rest within a minute.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from asyncio import sslproto
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from vnode.api.clock import Clock

TLS_BUFFER: Final = 32 * 1024
"""Bytes that asyncio keeps for reading on each TLS connection, by default 256 KiB. With the
default, 200 idle connections took 55 MiB, with 32 KiB 13 MiB; of 100 targets there are 1,200.
"""
STREAM_BUFFER: Final = 128 * 1024
"""As many on one whose bytes are passed on, after a pause many at once: a copy through the tunnel
took 5.3 s of CPU for a GiB with 32 KiB, and 3.1 s with 128.
"""
_GC_THRESHOLDS: Final = (10_000, 5, 2)
"""Objects more than before at which the youngest are collected, and of how many collections one is
of older ones too. Each Target that ends leaves a thousand objects in cycles, as do errors of
connections, and what is collected at once holds up the event loop: 50,000 objects for 107 ms, and
180,000 of all ages for 216 ms, on a busy machine. Reading 3,000 pods takes as long as with 50,000.
"""
_LARGE: Final = 512 * 1024
"""Bytes of blocks that glibc gets from the system one by one, and so gives back. By default it
raises that to 32 MiB once it has seen such blocks: bodies of a hundred lists then stay in pieces.
Smaller ones would cost streams some percent of their CPU time."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, as malloc.h names them
_EVERY: Final = 60.0  # seconds between two looks at how much is unused
_WORTH: Final = 32 * 1024 * 1024  # unused bytes that are worth a trim

_LOOK: Final = 1.0  # seconds between two looks at whether the start is over
_FEW: Final = 20_000  # objects more than at the last look, of a start that is over
_LONGEST_START: Final = 60.0  # seconds


class _Mallinfo2(ctypes.Structure):
    """What glibc tells of its memory, as malloc.h names it."""

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def configure() -> None:
    """Apply the settings; connections that are open already keep their buffers."""
    gc.set_threshold(*_GC_THRESHOLDS)
    sslproto.SSLProtocol.max_size = TLS_BUFFER
    if (mallopt := _of_libc("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, 2 * _LARGE)


def pause_collecting() -> None:
    """Have the collector wait for `resume_collecting`.

    A start reads all that there is, and nearly all of it stays. Of 10,000 pods and their chaperons
    the collector would take 3 s in vain, a third of the time until the first new pod has a place.
    """
    gc.disable()


async def resume_collecting(clock: Clock, known: asyncio.Event) -> None:
    """Let the collector run once most of what stays is there: it looks at that once.

    That is when all is `known` and few objects are made any more, or after a minute: whoever waits
    for an API server that is away makes garbage, too.
    """
    until, made = clock.monotonic() + _LONGEST_START, gc.get_count()[0]
    while clock.monotonic() < until:
        await clock.sleep(_LOOK)
        before, made = made, gc.get_count()[0]
        if known.is_set() and made < before + _FEW:
            break

    gc.enable()


def enlarge_buffer(transport: asyncio.BaseTransport) -> None:
    """Have a TLS connection read as much at once as a stream needs."""
    protocol: Any = getattr(transport, "_ssl_protocol", None)
    if isinstance(protocol, sslproto.SSLProtocol):
        vars(protocol)["max_size"] = STREAM_BUFFER


async def give_back(clock: Clock) -> None:
    """Give unused memory back to the system, until cancelled, whenever there is much of it.

    A hundred MiB take some five milliseconds, in a thread, of which other threads wait for
    memory as long as they need new blocks. What the interpreter keeps for small objects stays: it
    gets that by the MiB, and gives back what has no object left in it.
    """
    trim, smallest, left = _of_libc("malloc_trim"), resident(), 0
    while trim is not None:
        await clock.sleep(_EVERY)
        # How large the process is does not tell all: it may have been trimmed at its largest.
        free = await asyncio.to_thread(unused)
        if resident() > smallest + _WORTH or free > left + _WORTH:
            await asyncio.to_thread(trim, 0)
            smallest, left = resident(), await asyncio.to_thread(unused)
        else:
            smallest, left = min(smallest, resident()), min(left, free)


def unused() -> int:
    """Return the bytes that glibc has and nobody uses, given back or not; 0 if it does not tell."""
    ask = _of_libc("mallinfo2")  # since 2.33
    if ask is None:
        return 0

    ask.restype = _Mallinfo2  # type: ignore[attr-defined]
    return int(ask().fordblks)  # type: ignore[attr-defined]


def _of_libc(name: str) -> Callable[..., int] | None:
    """Return a function of glibc; None where another library has the memory, as musl."""
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None

    return found


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
