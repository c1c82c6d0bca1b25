"""Finishes what must not be left half done when the task that does it is cancelled.

A request that is cancelled may still be carried out by the API server, after others have gone on in
the belief that it was not. So whoever ends waits for the answer, but not for ever: a Lease is given
up meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Coroutine[Any, Any, T], name: str, seconds: float) -> T:
    """Return what `work` returns; a cancellation waits so long for its end before it goes on."""
    task = asyncio.create_task(work, name=name)
    try:
        return await asyncio.shield(task)
    finally:
        if not task.done():
            await _end(task, seconds)


async def _end(task: asyncio.Task[Any], seconds: float) -> None:
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()  # no effect on one that has ended
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # the cancellation says it all
