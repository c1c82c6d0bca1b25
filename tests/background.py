"""Work that goes on beside a test: it starts with a block, lasts as long as it, and ends with it.

Controllers and informers run until they are cancelled. One that ends sooner has failed, and so has
the test then; one that ends in another way than by its cancellation has swallowed that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Run coroutines beside the block, and end them after it."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
        assert not any(task.done() for task in tasks), tasks
    finally:
        for task in tasks:
            task.cancel()

        if tasks:
            await asyncio.wait(tasks)

    assert all(task.cancelled() for task in tasks), tasks
