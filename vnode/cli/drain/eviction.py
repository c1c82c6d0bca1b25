"""Evicts pods, and waits until they are gone; disruption budgets are respected.

The API server refuses an eviction that would violate a budget with 429. It is tried again until the
budget allows it: that may be at any moment, when another pod becomes ready, and no watch on budgets
shows it for certain. The end of a pod is watched: a proxy pod goes when its delegate has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from vnode.api import kinds, objects
from vnode.api.errors import ConfigError, Conflict, NotFound, TooManyRequests
from vnode.api.objects import Object
from vnode.kube import eviction
from vnode.kube.client import Client
from vnode.kube.informer import Informer

_MAX_CONCURRENT: Final = 16  # evictions

Say = Callable[[str], None]


async def evict(
    client: Client,
    node_name: str,
    pods: Sequence[Object],
    say: Say,
    *,
    grace: int | None,
    limit: float | None,
    pause: float = 0.0,
    again: float = eviction.RETRY_AFTER,
) -> None:
    """Evict the pods, one every `pause` seconds, and return when all are gone.

    ConfigError after `limit` seconds (None: never) names those that are left.
    """
    left = {objects.uid(pod): pod for pod in pods}
    gone = asyncio.Event()

    def on_pod(old: Object | None, new: Object | None) -> None:
        if new is None and old is not None and (pod := left.pop(objects.uid(old), None)):
            say(f"pod/{objects.name(pod)} evicted")

        if not left:
            gone.set()

    informer = Informer(client, kinds.PODS, field_selector=f"spec.nodeName={node_name}")
    informer.subscribe(on_pod)
    slots = asyncio.Semaphore(_MAX_CONCURRENT)
    try:
        async with asyncio.timeout(limit), asyncio.TaskGroup() as group:
            watch = group.create_task(informer.run(), name="drained-pods")
            await informer.synced.wait()
            present = {objects.uid(pod) for pod in informer.store.values()}
            for uid in left.keys() - present:
                on_pod(left[uid], None)

            on_pod(None, {})
            for number, pod in enumerate(pods):
                await asyncio.sleep(pause if number else 0)
                group.create_task(_evict(client, pod, slots, say, grace, again), name="evict")

            await gone.wait()
            watch.cancel()
    except TimeoutError:
        names = ", ".join(sorted(objects.key(pod) for pod in left.values()))
        raise ConfigError(
            f"drain did not complete within {limit:.0f} s; still there: {names}"
        ) from None


async def _evict(
    client: Client, pod: Object, slots: asyncio.Semaphore, say: Say, grace: int | None, again: float
) -> None:
    name, namespace = objects.name(pod), objects.namespace(pod)
    say(f"evicting pod {namespace}/{name}")
    while True:
        try:
            async with slots:
                await eviction.evict(client, pod, grace=grace)
        except NotFound:
            return
        except Conflict:  # a later one of its name is there, or the budget was just written
            if not await _is_there(client, pod):
                return

            await asyncio.sleep(again)
        except TooManyRequests as error:
            say(
                f'error when evicting pods/"{name}" -n "{namespace}" (will retry after '
                f"{again:.0f}s): {error.message}"
            )
            await asyncio.sleep(again)
        else:
            return


async def _is_there(client: Client, pod: Object) -> bool:
    try:
        found = await client.get(kinds.PODS, objects.name(pod), objects.namespace(pod))
    except NotFound:
        return False

    return objects.uid(found) == objects.uid(pod)
