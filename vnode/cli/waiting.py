"""Waits until objects are gone, or are as wanted, with a watch and for a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from vnode.api import objects
from vnode.api.errors import Unreachable
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.kube.informer import Informer


async def until_gone(
    client: Client,
    kind: Kind,
    selects: Callable[[Object], bool],
    seconds: float,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
) -> Objects:
    """Wait until no such object exists; return those that are left after `seconds`.

    Raises the error that kept it from listing them, if it could not list them within that time.
    """
    done = asyncio.Event()
    informer = Informer(
        client,
        kind,
        namespace=namespace,
        label_selector=label_selector,
        field_selector=field_selector,
    )

    def left() -> Objects:
        return [obj for obj in informer.store.values() if selects(obj)]

    def on_change(_old: Object | None, _new: Object | None) -> None:
        if informer.synced.is_set() and not left():
            done.set()

    informer.subscribe(on_change)
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            watch = group.create_task(informer.run(), name=f"gone-{kind.plural}")
            await informer.synced.wait()
            on_change(None, None)
            await done.wait()
            watch.cancel()
    except TimeoutError:
        check_synced(informer, seconds)
        return sorted(left(), key=objects.key)

    return []


async def until_one(
    client: Client,
    kind: Kind,
    name: str,
    namespace: str | None,
    condition: Callable[[Object], bool],
    seconds: float,
) -> tuple[bool, Object]:
    """Wait until the condition holds of an object; tell whether it does, with the object.

    That one is empty if there is none.
    """
    done = asyncio.Event()
    informer = Informer.of_object(client, kind, name, namespace)

    def on_change(_old: Object | None, new: Object | None) -> None:
        if new is not None and condition(new):
            done.set()

    informer.subscribe(on_change)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            watch = group.create_task(informer.run(), name=f"{kind.plural}-awaited")
            await done.wait()
            watch.cancel()

    return done.is_set(), next(iter(informer.store.values()), {})


def check_synced(informer: Informer, seconds: float) -> None:
    """Raise the last error of an informer that has not had its first list yet."""
    if not informer.synced.is_set():
        cluster, plural = informer.series
        not_listed = Unreachable(f"{cluster}: could not list {plural} within {seconds:g} s")
        raise informer.failure or not_listed
