"""Measures what code computes: its thread's time of the processor, collections of garbage aside.

Such a collection looks through everything that the tests' process holds, whoever's turn it is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Have no garbage collected in the block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the block computes for longer than that, also if it ends with an error."""
    with uncollected():
        began = time.thread_time()
        try:
            yield
        finally:
            took = time.thread_time() - began
            assert took < seconds
