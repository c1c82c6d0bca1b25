"""A program that runs in a terminal of a chosen size, as a user's does."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tests import kit


class PseudoTerminal:
    """The user's side: types, resizes, looks."""

    def __init__(self, outer: int, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._outer = outer

    def type(self, text: bytes) -> None:
        """Send `text` to the program, as if a user typed it."""
        os.write(self._outer, text)

    def resize(self, rows: int, columns: int) -> None:
        """Change the terminal's size, as a user does who drags the window's corner."""
        _resize(self._outer, rows, columns)

    async def until_shown(self, text: bytes, typing: bytes = b"") -> bytes:
        """Read until the terminal shows `text`, typing something again and again if told to.

        Sizes travel beside the input, not with it: who waits for one has to ask more than once.
        """
        seen = b""
        async with asyncio.timeout(kit.PATIENCE):
            while text not in seen:
                if typing:
                    self.type(typing)
                    await asyncio.sleep(0.1)
                seen += await asyncio.to_thread(os.read, self._outer, 4096)
        return seen


def _resize(descriptor: int, rows: int, columns: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@asynccontextmanager
async def started(
    command: list[str], environment: Mapping[str, str], rows: int, columns: int
) -> AsyncIterator[PseudoTerminal]:
    """Run `command` in a terminal of that size; kill it at the end if it still runs."""
    outer, inner = pty.openpty()
    _resize(outer, rows, columns)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(inner)
    try:
        yield PseudoTerminal(outer, process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

        os.close(outer)
