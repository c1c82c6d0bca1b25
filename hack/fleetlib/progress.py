"""Prints the progress of long steps."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def say(text: str) -> None:
    """Write one line to stderr at once, so that stdout stays for results."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Format a duration: `4.2 s` below a minute, `3 min 05 s` from a minute on."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


@contextmanager
def reported(
    what: str, detail: Callable[[], str] = lambda: "", every: float = 15
) -> Iterator[None]:
    """Print that `what` begins, that it still runs (at intervals), and that it ended."""
    started = time.monotonic()
    over = threading.Event()

    def tick() -> None:
        while not over.wait(every):
            extra = detail()
            elapsed = duration(time.monotonic() - started)
            say(f"  {what}: {elapsed}{', ' if extra else ''}{extra}")

    say(f"{what} ...")
    ticker = threading.Thread(target=tick, name=f"progress of {what}", daemon=True)
    ticker.start()
    try:
        yield
    finally:
        over.set()
        ticker.join()
    say(f"{what}: done in {duration(time.monotonic() - started)}")
