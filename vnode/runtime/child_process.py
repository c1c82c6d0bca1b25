"""Runs a part of the agent as a process of its own, and starts it again when it ends.

The child reads one line that says what it is to do, and writes a line when it is ready, and again
every few seconds. It ends when its input ends, so that it never outlives the agent, whatever ends
that. One that says nothing for long is ended, too.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from vnode.api.clock import Clock

_SILENCE: Final = 30.0  # seconds, twice: after a stall of our own the first may be ours
_ENDING: Final = 15.0  # seconds for a child that is asked to end
_FIRST, _LONGEST = 1.0, 30.0  # seconds until it is started again
_STEADY: Final = 60.0  # seconds after which a child counts as one that ran well
_LINE: Final = 64 * 1024  # bytes

log = logging.getLogger(__name__)


class ChildProcess:
    """Keeps a child running; `ready` is set while one is.

    `on_line` gets each line that it writes.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        instructions: bytes,
        on_line: Callable[[bytes], None],
        clock: Clock,
        *,
        silence: float = _SILENCE,
    ) -> None:
        self.name = name
        self.ready = asyncio.Event()
        self.pid = 0  # 0 while there is none
        self._command = tuple(command)
        self._instructions = instructions
        self._on_line = on_line
        self._clock = clock
        self._silence = silence

    async def run(self) -> None:
        """Start it again and again until cancelled; then it has ended, too."""
        delay = _FIRST
        while True:
            begun = self._clock.monotonic()
            why = await self._run_once()
            if self._clock.monotonic() - begun > _STEADY:
                delay = _FIRST

            log.warning("the process for %s %s; it is started again", self.name, why)
            await self._clock.sleep(delay)
            delay = min(2 * delay, _LONGEST)

    async def _run_once(self) -> str:
        """Run one child to its end; return how it ended."""
        try:
            # A session of its own: what a terminal or an operator sends to all is for the agent.
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, limit=_LINE, start_new_session=True
            )
        except OSError as error:
            return f"cannot be started: {error.strerror}"

        self.pid = process.pid
        try:
            return await self._listen(process)
        finally:
            self.ready.clear()
            self.pid = 0
            await _end(process)

    async def _listen(self, process: Process) -> str:
        assert process.stdin is not None, "started with pipes"
        assert process.stdout is not None, "started with pipes"
        process.stdin.write(self._instructions + b"\n")
        silent = 0
        while silent < 2:
            try:
                async with asyncio.timeout(self._silence):
                    line = await process.stdout.readline()
            except TimeoutError:
                silent += 1
                continue
            except ValueError:
                return "writes a line without end"

            if not line:
                return f"ended with exit code {await process.wait()}"

            silent = 0
            self._on_line(line)
            self.ready.set()

        return "says nothing"


async def _end(process: Process) -> None:
    """Close its input, which asks it to end; kill it if it does not."""
    assert process.stdin is not None, "started with pipes"
    process.stdin.close()
    try:
        async with asyncio.timeout(_ENDING):
            await process.wait()
    except TimeoutError:
        log.warning("the process %d does not end; it is killed", process.pid)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()

            await process.wait()
