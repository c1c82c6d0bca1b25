"""Runs commands that print credentials, so that none of them can hold up or harm the agent.

Command, arguments and part of the environment may come from somebody who need not be trusted. So a
run has bounds: a time, a size, a number at the same time. It has no terminal and no input, and what
it has started ends with it (`leftover_processes`).
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count
from typing import Final
from weakref import WeakKeyDictionary

from vnode.api import visible
from vnode.api.errors import Unreachable
from vnode.kube import leftover_processes

TIMEOUT: Final = 10.0  # seconds for one run
OUTPUT_LIMIT: Final = 65_536  # bytes on standard output
_ERROR_LIMIT: Final = 4_096  # bytes on standard error that are kept; the last ones
_TOLD: Final = 200  # characters of it that go into a message
_GOING: Final = 5.0  # seconds for a process that was killed to be gone
_CHUNK: Final = 16_384  # bytes read at once
_runs: Final = count()  # by which the processes of each are known
_SECRET: Final = re.compile(r"[A-Za-z0-9+/=_.~-]{32,}")  # may be one, wherever it stands


@dataclass(frozen=True, slots=True)
class Execution:
    """A command, its arguments, its whole environment, and the seconds that it may take."""

    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = TIMEOUT


class Lane(Enum):
    """Which runs of a command wait for each other."""

    RENEWING = auto()  # the last run worked
    FIRST = auto()
    FAILING = auto()  # the last run has failed


_AT_ONCE: Final = {Lane.RENEWING: 4, Lane.FIRST: 4, Lane.FAILING: 2}  # runs of a command


class ExecRunner:
    """Runs commands, a few at a time of each, of which an operator lists few.

    Each lane has places of its own: many that hang, or are new, hold up each other, and none that
    works.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, Lane], asyncio.Semaphore] = {}

    async def run(self, execution: Execution, *, lane: Lane = Lane.FIRST) -> bytes:
        """Return what a command prints; Unreachable says why it gave nothing of use."""
        key = execution.command, lane
        async with self._places.setdefault(key, asyncio.Semaphore(_AT_ONCE[lane])):
            return await run(execution)


_shared: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, ExecRunner]] = WeakKeyDictionary()


def shared() -> ExecRunner:
    """Return the runner of this process: whoever names a command shares its places."""
    return _shared.setdefault(asyncio.get_running_loop(), ExecRunner())


async def run(execution: Execution) -> bytes:
    """Run a command to its end and return what it prints on standard output.

    Raises Unreachable if it cannot be started, fails, takes too long or prints too much.
    """
    name = execution.command
    async with _started(execution) as process:
        try:
            async with asyncio.timeout(execution.timeout):
                output, errors = await _communicate(process)
        except TimeoutError:
            raise Unreachable(
                f"exec plugin {name!r} gave no answer within {execution.timeout:.0f} s"
            ) from None

    if output is None:
        raise Unreachable(f"exec plugin {name!r} prints more than {OUTPUT_LIMIT} bytes")

    if process.returncode:
        raise Unreachable(f"exec plugin {name!r} failed (exit {process.returncode}){_last(errors)}")

    return output


@asynccontextmanager
async def _started(execution: Execution) -> AsyncIterator[Process]:
    """Start a process for the block; afterwards it is gone, and all that it has started."""
    loop, name = asyncio.get_running_loop(), execution.command
    mark = f"{os.getpid()}.{next(_runs)}"
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=_CHUNK, loop=loop),
            name,
            *execution.args,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env={**execution.environment, leftover_processes.MARK: mark},
            cwd="/",
            start_new_session=True,  # no terminal, and one group to end
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it has a NUL byte"
        raise Unreachable(f"exec plugin {name!r} cannot be started: {why}") from error

    process = Process(transport, protocol, loop)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(transport.get_pid(), signal.SIGKILL)

        for descriptor in (1, 2):  # which a descendant could hold open
            if pipe := transport.get_pipe_transport(descriptor):
                pipe.close()

        # To close the transport of a process that runs asks for its exit code, behind the back of
        # asyncio's own thread, which then complains of an unknown process.
        try:
            with suppress(TimeoutError):  # of a process that even this does not end
                async with asyncio.timeout(_GOING):
                    await process.wait()

            await asyncio.to_thread(leftover_processes.end, mark, process.pid)
        finally:
            transport.close()


async def _communicate(process: Process) -> tuple[bytes | None, bytes]:
    """Return both outputs of a process that has ended; None for one that is too large."""
    assert process.stdout is not None, "started with pipes"
    assert process.stderr is not None, "started with pipes"
    async with asyncio.TaskGroup() as group:
        errors = group.create_task(_tail(process.stderr), name="exec-plugin-stderr")
        output = await _bounded(process.stdout)
        if output is None:
            errors.cancel()

    if output is None:
        return None, b""

    await process.wait()
    return output, errors.result()


async def _bounded(stream: asyncio.StreamReader) -> bytes | None:
    read = bytearray()
    while chunk := await stream.read(_CHUNK):
        read += chunk
        if len(read) > OUTPUT_LIMIT:
            return None

    return bytes(read)


async def _tail(stream: asyncio.StreamReader) -> bytes:
    last = b""
    while chunk := await stream.read(_CHUNK):
        last = (last + chunk)[-_ERROR_LIMIT:]

    return last


def _last(errors: bytes) -> str:
    """Return the last line of standard error for a message, without what may be a secret."""
    lines = errors.decode(errors="replace").split("\n")
    line = next((line for line in reversed(lines) if line.strip()), "")
    text = _SECRET.sub("...", visible.line(line.strip()))[:_TOLD]
    return f": {text}" if text else ""
