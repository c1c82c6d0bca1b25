"""Runs `vnode` with an event loop that is measured, in a process of its own.

    python -m tests.fuzz.measuring REPORT SECONDS agent --kubeconfig ...

The agent's process for admission is measured as well, with a report of its own.

A line of JSON goes into the file REPORT for each callback that takes more CPU time than all before
it, and for each that takes more than SECONDS. It is the CPU time of the thread that counts: the
machine may have more to do.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import sys
import threading
import time
import traceback
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIMIT: Final = 0.05  # seconds of CPU time in one callback, garbage collections aside
# More, with them: one of all objects takes some 80 ms where a hostile list fills the heap, and it
# falls into whatever callback happens to make the last object.
COLLECTING: Final = 0.15
ADMISSION: Final = ".admission"
"""The end of the name of the report about the process that the agent starts for admission."""
FIRST: Final = 0.02  # seconds, below which nothing is written down
_LOOK: Final = 0.02  # seconds between looks at what runs


@dataclass(slots=True)
class _Running:
    """The callback that a thread runs at present: that of virtual nodes' Leases has a loop, too."""

    began: float = 0.0
    """Monotonic; 0: none runs."""
    stack: str = ""
    """Once it has taken long."""
    collecting: float = 0.0
    """Seconds of CPU time of its garbage collections."""
    collection: float = 0.0
    """Thread time at the begin of the present one."""


class LoopMeter:
    """Measures every callback of every event loop of this process."""

    def __init__(self, report: io.TextIOBase, limit: float) -> None:
        self._report = report
        self._limit = limit
        self._longest = FIRST
        self._running: defaultdict[int, _Running] = defaultdict(_Running)  # by thread

    def install(self) -> None:
        """Measure from now on."""
        run = asyncio.Handle._run

        def measured(handle: asyncio.Handle) -> None:
            running = self._running[threading.get_ident()]
            running.stack, running.began, running.collecting = "", time.monotonic(), 0.0
            before = time.thread_time()
            try:
                run(handle)
            finally:
                took = time.thread_time() - before
                running.began = 0.0
                if took > min(self._longest, self._limit):
                    self._write(took, running, handle)

        setattr(asyncio.Handle, "_run", measured)  # noqa: B010 - mypy forbids a plain assignment
        gc.callbacks.append(self._on_collection)
        threading.Thread(target=self._watch, daemon=True).start()

    def _write(self, took: float, running: _Running, handle: asyncio.Handle) -> None:
        self._longest = max(took, self._longest)
        line = {
            "seconds": took,
            "collecting": running.collecting,
            "what": _described(handle),
            "stack": running.stack,
        }
        self._report.write(json.dumps(line) + "\n")
        self._report.flush()

    def _on_collection(self, phase: str, _info: dict[str, int]) -> None:
        running = self._running[threading.get_ident()]
        if phase == "start":
            running.collection = time.thread_time()
        else:
            running.collecting += time.thread_time() - running.collection

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK)
            now, frames = time.monotonic(), sys._current_frames()
            for thread, running in list(self._running.items()):
                late = running.began and now - running.began > self._limit / 2
                if late and not running.stack and (frame := frames.get(thread)) is not None:
                    running.stack = "".join(traceback.format_stack(frame)[-8:])


def _described(handle: asyncio.Handle) -> str:
    """Return what ran; of a task also where it waits now, just behind what took long."""
    task = getattr(getattr(handle, "_callback", None), "__self__", None)
    if not isinstance(task, asyncio.Task):
        return repr(handle)[:300]

    frames = [f"{Path(f.f_code.co_filename).name}:{f.f_lineno}" for f in task.get_stack()]
    return f"task {task.get_name()!r}, now in {' '.join(frames) or 'its end'}: {task!r}"[:600]


def main() -> None:
    """Measure the command of the command line."""
    name, limit = sys.argv.pop(1), sys.argv.pop(1)
    report = Path(name).open("w")  # noqa: SIM115 - open as long as the process
    LoopMeter(report, float(limit)).install()
    from vnode.cli import agent
    from vnode.cli.main import main as run

    agent.OWN_COMMAND = (sys.executable, "-m", "tests.fuzz.measuring", name + ADMISSION, limit)
    run()


if __name__ == "__main__":
    main()
