"""Prints the demo's headings, commands, tables, and waits with the time that passes.

Colours and rewritten lines appear only on a terminal (and not with `NO_COLOR`); a log gets plain
lines, and while it waits a line every ten seconds.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from hack.fleetlib.progress import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BOLD, _DIM, _GREEN, _RED = "1", "2", "32", "31"


class Waiting:
    """A wait that is shown; the waiting code keeps `detail` up to date."""

    def __init__(self) -> None:
        self.detail = ""


class Terminal:
    def __init__(self, output: TextIO = sys.stdout) -> None:
        self._output = output
        self._live = output.isatty() and os.environ.get("TERM") != "dumb"
        self._coloured = self._live and "NO_COLOR" not in os.environ

    def heading(self, text: str) -> None:
        self._write(f"\n{self._styled(text, _BOLD)}\n")

    def line(self, text: str = "") -> None:
        self._write(f"{text}\n")

    def command(self, text: str, answer: str) -> None:
        """Show a command that was run, and what it printed."""
        self._write(f"{self._styled(f'$ {text}', _DIM)}\n{answer.rstrip()}\n")

    def good(self, text: str) -> None:
        self._write(self._styled(text, _GREEN) + "\n")

    def bad(self, text: str) -> None:
        self._write(self._styled(text, _RED) + "\n")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Format a table with columns as wide as their widest cell."""
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        for number, row in enumerate([header, *rows]):
            cells = zip(row, widths, strict=True)
            text = "  ".join(cell.ljust(width) for cell, width in cells).rstrip()
            self.line(self._styled(text, _DIM) if number == 0 else text)

    @contextmanager
    def waiting(self, text: str) -> Iterator[Waiting]:
        """Show `text` with the time that passes, and how long it took in the end."""
        wait, over, started = Waiting(), threading.Event(), time.monotonic()

        def now() -> str:
            detail = f", {wait.detail}" if wait.detail else ""
            return f"{text} ({duration(time.monotonic() - started)}{detail})"

        def tick() -> None:
            while not over.wait(0.2 if self._live else 10):
                self._write(f"\r\033[K{now()} ..." if self._live else f"{now()} ...\n")

        ticker = threading.Thread(target=tick, name="ticker", daemon=True)
        ticker.start()
        try:
            yield wait
        finally:
            over.set()
            ticker.join()
            self._write(f"\r\033[K{now()}\n" if self._live else f"{now()}\n")

    def _styled(self, text: str, style: str) -> str:
        return f"\033[{style}m{text}\033[0m" if self._coloured else text

    def _write(self, text: str) -> None:
        self._output.write(text)
        self._output.flush()
