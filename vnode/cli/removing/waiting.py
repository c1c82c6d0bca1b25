"""Waiting, by a watch and for a bounded time, until objects are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vnode.api import objects
from vnode.api.errors import Unreachable
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.kube.informer import Informer


async def until_gone(
    client: Client,
    kind: Kind,
    is_meant: Callable[[Object], bool],
    seconds: float,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
) -> Objects:
    """Return when no such object is there; those that are left after that time.

    Raises what kept it from seeing them, if it has not seen them within that time.
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
        return [obj for obj in informer.store.values() if is_meant(obj)]

    def look(_old: Object | None, _new: Object | None) -> None:
        if informer.synced.is_set() and not left():
            done.set()

    informer.subscribe(look)
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            watch = group.create_task(informer.run(), name=f"gone-{kind.plural}")
            await informer.synced.wait()
            look(None, None)
            await done.wait()
            watch.cancel()
    except TimeoutError:
        check_seen(informer, seconds)
        return sorted(left(), key=objects.key)

    return []


def check_seen(informer: Informer, seconds: float) -> None:
    """Raise what kept an informer from its first list for so long, if it has had none."""
    if not informer.synced.is_set():
        cluster, plural = informer.series
        unseen = Unreachable(f"{cluster}: no list of {plural} within {seconds:g} s")
        raise informer.failure or unseen
