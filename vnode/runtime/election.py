"""Runs an election beside the work that it is about, in a thread of its own.

A lease that the work's own event loop renews is lost whenever that loop is held up. The thread has
a connection of its own, too. Yet an agent whose work stands still must not lead for ever: so the
thread renews only as long as the work's loop has shown that it runs (`StallGuard`).

What else must not wait for the work, such as the heartbeats of virtual nodes, runs in the thread as
well, from when the work begins until it has ended: work that stands still ends long after its
leadership.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from vnode.kube.client import Client
from vnode.runtime.leader import Elector
from vnode.runtime.loop_thread import loop_thread, run_in
from vnode.runtime.stall_guard import StallGuard
from vnode.runtime.supervisor import supervise

Connect = Callable[[], AbstractAsyncContextManager[Client]]
Elect = Callable[[Client, Callable[[], bool]], Elector]
Beside = Callable[[Client, StallGuard], Coroutine[Any, Any, None]]


async def lead(
    connect: Connect,
    elect: Elect | None,
    work: Callable[[], Coroutine[Any, Any, None]],
    beside: Beside,
    *,
    guard: StallGuard | None = None,
) -> None:
    """Campaign, and run `work` in this loop while leading, as `Elector.run` does.

    `connect` makes the client of the thread, and `elect` the elector, given that client and what
    tells whether the work's loop runs; without `elect` there is nobody to campaign against.
    `beside` runs in the thread, beside the work.
    """
    here = asyncio.get_running_loop()
    watch = guard or StallGuard()

    async def watched() -> None:
        watch.restart()
        await work()

    async def campaign() -> None:
        async with connect() as client:

            async def term() -> None:
                async with supervise() as tasks:
                    tasks.start(beside(client, watch), "beside-leader")
                    await run_in(here, watched, "leader")

            await (elect(client, watch.runs).run(term) if elect else term())

    async with supervise() as tasks:
        tasks.start(watch.run(), "election-beat")
        async with loop_thread("election") as loop:
            await run_in(loop, campaign, "election")
