"""Runs coroutines in the event loop of another thread, from one loop to the other.

What must happen in time, as the renewal of a Lease, cannot share a loop with work that may hold it
up: a list of thousands of objects, or a machine that gives the process little of its processors.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def loop_thread(name: str) -> AsyncIterator[asyncio.AbstractEventLoop]:
    """Yield the event loop of a new thread, which ends with the block."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        loop.run_forever()
        loop.close()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)


async def run_in(
    loop: asyncio.AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, None]], name: str
) -> None:
    """Run a coroutine in the loop of another thread, and wait for its end, however it ends.

    It is cancelled with the caller, who waits for it then, too. An error of it is raised here.
    """
    here = asyncio.get_running_loop()
    ended: asyncio.Future[None] = here.create_future()
    task: asyncio.Task[None] | None = None  # from `start` on, which the other thread runs first

    def settle(error: BaseException | None) -> None:
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    def report(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        here.call_soon_threadsafe(settle, error)

    def start() -> None:
        nonlocal task
        task = loop.create_task(make(), name=name)
        task.add_done_callback(report)

    def cancel() -> None:
        assert task is not None
        task.cancel()

    loop.call_soon_threadsafe(start)
    try:
        await asyncio.shield(ended)
    except asyncio.CancelledError:
        loop.call_soon_threadsafe(cancel)
        while not ended.done():
            try:
                await asyncio.wait({ended})
            except asyncio.CancelledError:
                continue  # raised below, once the other thread has ended

        if error := ended.exception():
            raise error from None

        raise
