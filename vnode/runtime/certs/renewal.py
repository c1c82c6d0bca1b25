"""The loop that keeps one thing right: look at it when it changes, and when it is time to.

It may be an object of the API server that an informer follows, and something else beside it that
stirs, as the CA does. `look` does what there is to do, and says when it wants to look again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from vnode.api.clock import happens_within
from vnode.kube.informer import Informer

Look = Callable[[], Awaitable[float | None]]


async def keep(stirred: asyncio.Event, look: Look) -> None:
    """Look now, whenever the event is set, and after as many seconds as `look` has answered."""
    while True:
        stirred.clear()
        await happens_within(stirred, await look())


async def follow(informer: Informer, listed: Callable[[], None], *others: asyncio.Event) -> None:
    """Run the informer, and call `listed` once it has a list and the other events have happened."""
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run(), name=f"{informer.kind.plural}-followed")
        for event in (informer.synced, *others):
            await event.wait()

        listed()


async def keep_object(
    informer: Informer,
    look: Look,
    stirred: asyncio.Event | None = None,
    *,
    at_once: bool = False,
) -> None:
    """Run the informer and look whenever it says something, too; first when it has a list.

    With `at_once`, already before that.
    """
    stirring = stirred or asyncio.Event()
    informer.subscribe(lambda _old, _new: stirring.set())
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run(), name=f"{informer.kind.plural}-kept")
        if not at_once:
            await informer.synced.wait()

        await keep(stirring, look)
