"""Runs named tasks for as long as their owner runs.

A task given to a supervisor must never end: one that returns is as much a fault as one that raises,
and either ends the group, hence the process, which the cluster restarts with clean state. Only
cancellation is a good end.

So such a task must be about the agent as a whole. A task about one link or one object is for
`keyed`, where its failure ends nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from vnode.api.clock import Clock
from vnode.runtime.keyed_tasks import K, KeyedTasks, Report


async def sleep_forever() -> None:
    """Sleep until cancelled, as the owner of tasks does that has nothing else to do."""
    await asyncio.get_running_loop().create_future()


class Supervisor:
    """Starts tasks in a TaskGroup and guards them; made by `supervise`."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()  # those that have not ended
        self._keyed: list[KeyedTasks[Any]] = []

    def start(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a coroutine that must not end by itself."""
        task = self._group.create_task(_guard(coroutine, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def keyed(self, report: Report[K] | None = None, clock: Clock | None = None) -> KeyedTasks[K]:
        """Return tasks about one object each, which are closed with the supervisor's own."""
        tasks: KeyedTasks[K] = KeyedTasks(self._group, report, clock)
        self._keyed.append(tasks)
        return tasks

    def stop(self) -> None:
        """Cancel all tasks; the end of the `supervise` block waits for them."""
        for task in self._tasks:
            task.cancel()

        for keyed in self._keyed:
            keyed.close()


async def _guard(coroutine: Coroutine[Any, Any, None], name: str) -> None:
    await coroutine
    raise RuntimeError(f"task {name} ended, which it never should")


@asynccontextmanager
async def supervise() -> AsyncIterator[Supervisor]:
    """Yield a supervisor whose tasks are cancelled and awaited at the end of the block."""
    async with asyncio.TaskGroup() as group:
        supervisor = Supervisor(group)
        try:
            yield supervisor
        finally:
            supervisor.stop()
