"""Cordons virtual nodes of Targets that are to go, and evicts their pods at a rate.

What was cordoned is marked on the node in the same write, so that a node that somebody else has
cordoned stays so when the profile is back. Evictions honour disruption budgets. A pod whose
eviction was refused waits, and others go first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Conflict, NotFound
from vnode.api.objects import Object
from vnode.api.token_bucket import MinuteLimits
from vnode.kube import eviction
from vnode.kube.client import Client
from vnode.kube.informer import Informer

_REFUSED: Final = 5.0  # seconds until a refused eviction is tried again, as in kubectl

log = logging.getLogger(__name__)


class NodeDrains:
    """Drains virtual nodes of one cluster; `pods_on` returns the pods that are known on a node."""

    def __init__(
        self,
        client: Client,
        nodes: Informer,
        pods_on: Callable[[str], Iterable[Object]],
        clock: Clock,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._pods_on = pods_on
        self._clock = clock
        self._limits: MinuteLimits[str] = MinuteLimits()  # by UID of a set
        self._evicted: set[str] = set()  # UIDs, until the store shows that they terminate
        self._refused: dict[str, float] = {}  # by UID of a pod: when (monotonic) it is tried again

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Forget what is known of a pod that ends."""
        if old is not None and (new is None or objects.is_terminating(new)):
            self._evicted.discard(objects.uid(old))
            self._refused.pop(objects.uid(old), None)

    async def cordon(self, name: str) -> None:
        """Cordon a node, unless it is; there may be no such node."""
        node = self._nodes.store.get(name)
        if node is None or objects.spec(node).get("unschedulable"):
            return

        await self._patch(node, True)
        log.info("node/%s cordoned: the profile of its Target is gone", name)

    async def uncordon(self, name: str) -> None:
        """Uncordon a node that `cordon` has cordoned."""
        node = self._nodes.store.get(name)
        if node is None or keys.CORDONED_BY_SET not in objects.annotations(node):
            return

        await self._patch(node, None)
        log.info("node/%s uncordoned: the profile of its Target is back", name)

    async def _patch(self, node: Object, cordoned: bool | None) -> None:
        mark = "true" if cordoned else None
        metadata = {"uid": objects.uid(node), "annotations": {keys.CORDONED_BY_SET: mark}}
        body = {"metadata": metadata, "spec": {"unschedulable": cordoned}}
        try:
            await self._client.patch(kinds.NODES, objects.name(node), body)
        except NotFound:
            log.debug("node/%s is gone", objects.name(node))

    async def left(self, node: str) -> list[Object]:
        """Return the pods that have to go before a node may: none of those that have finished, nor
        of DaemonSets, which would make them again.

        If none is known, the API server is asked: all others would end at once with the node, and
        of one without a connection the pods that others bound are not watched.
        """
        if known := [pod for pod in self._pods_on(node) if _has_to_go(pod)]:
            return known

        listed = await self._client.list(kinds.PODS, field_selector=f"spec.nodeName={node}")
        return [pod for pod in listed if _has_to_go(pod)]

    async def evict(
        self, node: str, left: Iterable[Object], set_uid: str, per_minute: int
    ) -> float | None:
        """Evict the next of these pods, if it is time; return the seconds to wait, None if all are
        on their way and their end is seen."""
        now = self._clock.monotonic()
        waiting = [
            pod
            for pod in left
            if not objects.is_terminating(pod) and objects.uid(pod) not in self._evicted
        ]
        if not waiting:
            return None if any(map(_has_to_go, self._pods_on(node))) else _REFUSED

        retry = {objects.uid(pod): self._refused.get(objects.uid(pod), now) for pod in waiting}
        pod = min(waiting, key=lambda pod: (max(retry[objects.uid(pod)], now), objects.key(pod)))
        if retry[objects.uid(pod)] > now:
            return retry[objects.uid(pod)] - now

        if self._limits.take(set_uid, per_minute, now):
            await self._evict(pod, node)

        return self._limits.wait(set_uid, per_minute, now)

    async def _evict(self, pod: Object, node: str) -> None:
        uid = objects.uid(pod)
        try:
            await eviction.evict(self._client, pod)
        except (Conflict, NotFound):
            self._refused[uid] = self._clock.monotonic() + _REFUSED  # its event comes first
        except ApiError as error:  # a budget, most often, or a webhook: others can go meanwhile
            wait = max(_REFUSED, getattr(error, "retry_after", 0.0))
            self._refused[uid] = self._clock.monotonic() + wait
            log.info("pod/%s cannot be evicted yet: %s", objects.key(pod), error.message)
        else:
            self._evicted.add(uid)
            log.info("pod/%s evicted from node/%s, whose Target goes", objects.key(pod), node)


def _has_to_go(pod: Object) -> bool:
    owner = (objects.controller_reference(pod) or {}).get("kind")
    return owner != "DaemonSet" and not objects.is_finished(pod)
