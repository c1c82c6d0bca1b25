"""Runs an election beside the work that it is about, in a thread of its own.

A lease that the work's own event loop renews is lost whenever that loop is held up. The thread has
a connection of its own, too. Yet an agent whose work stands still must not lead for ever: so the
thread renews only as long as the work's loop has shown that it runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from vnode.kube.client import Client
from vnode.runtime.leader import Elector
from vnode.runtime.loop_thread import loop_thread, run_in
from vnode.runtime.supervisor import supervise

STALL_TIMEOUT: Final = 60.0
"""Seconds that the loop of the work may stand still before its leadership is given up.

A liveness probe with Kubernetes' defaults ends the process sooner.
"""

_BEATS: Final = 10  # in that time

Connect = Callable[[], AbstractAsyncContextManager[Client]]
Elect = Callable[[Client, Callable[[], bool]], Elector]


async def lead(
    connect: Connect,
    elect: Elect,
    work: Callable[[], Coroutine[Any, Any, None]],
    *,
    stall_timeout: float = STALL_TIMEOUT,
) -> None:
    """Campaign, and run `work` in this loop while leading, as `Elector.run` does.

    `connect` makes the client of the thread, and `elect` the elector, given that client and what
    tells whether the work's loop runs.
    """
    here = asyncio.get_running_loop()
    seen = time.monotonic()  # when this loop last ran; written here, read by the thread

    def runs() -> bool:
        return time.monotonic() - seen < stall_timeout

    async def beat() -> None:
        nonlocal seen
        while True:
            seen = time.monotonic()
            await asyncio.sleep(stall_timeout / _BEATS)

    async def campaign() -> None:
        async with connect() as client:
            await elect(client, runs).run(lambda: run_in(here, work, "leader"))

    async with supervise() as tasks:
        tasks.start(beat(), "election-beat")
        async with loop_thread("election") as loop:
            await run_in(loop, campaign, "election")
