"""Runs reconcile loops for a single object: reconcile when it changes, and when it is due.

The object may be one of the API server, followed by an informer; an event may signal other changes,
such as a new CA. A reconcile function does all that is necessary, and returns after how many
seconds it has to be called again, or None.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from vnode.api.clock import happens_within
from vnode.kube.informer import Informer

Reconcile = Callable[[], Awaitable[float | None]]


async def keep(changed: asyncio.Event, reconcile: Reconcile) -> None:
    """Reconcile now, whenever the event is set, and after the seconds that `reconcile` returns."""
    while True:
        changed.clear()
        await happens_within(changed, await reconcile())


async def follow(informer: Informer, listed: Callable[[], None], *others: asyncio.Event) -> None:
    """Run the informer, and call `listed` once it has a list and the other events have happened."""
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run(), name=f"{informer.kind.plural}-followed")
        for event in (informer.synced, *others):
            await event.wait()

        listed()


async def keep_object(
    informer: Informer,
    reconcile: Reconcile,
    changed: asyncio.Event | None = None,
    *,
    at_once: bool = False,
) -> None:
    """Run the informer, and reconcile as `keep` does and at each of its events.

    The first time is when the informer has a list, or before that with `at_once`.
    """
    event = changed or asyncio.Event()
    informer.subscribe(lambda _old, _new: event.set())
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run(), name=f"{informer.kind.plural}-kept")
        if not at_once:
            await informer.synced.wait()

        await keep(event, reconcile)
