"""Cordons virtual nodes of Targets that are to go, and evicts their pods at a rate.

What was cordoned is marked on the node in the same write, so that a node that somebody else has
cordoned stays so when the profile is back. Evictions honour disruption budgets. A pod whose
eviction was refused waits, and others go first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Conflict, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.eviction import RETRY_AFTER, Evictor
from vnode.kube.informer import Informer

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
        self._evictor: Evictor[str] = Evictor(client, clock)  # at the rates of sets, by their UIDs
        self.on_pod = self._evictor.on_pod

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
        waiting = [pod for pod in left if not self._evictor.is_ending(pod)]
        if not waiting:
            return None if any(map(_has_to_go, self._pods_on(node))) else RETRY_AFTER

        pod = min(waiting, key=lambda pod: (self._evictor.retry_in(pod), objects.key(pod)))
        if wait := self._evictor.retry_in(pod) or self._evictor.turn(set_uid, per_minute):
            return wait

        refusal = await self._evictor.evict(pod)
        if refusal is None:
            log.info("pod/%s evicted from node/%s, whose Target goes", objects.key(pod), node)
        elif not isinstance(refusal, Conflict | NotFound):  # of one that is gone there is an event
            log.info("pod/%s cannot be evicted yet: %s", objects.key(pod), refusal.message)

        return self._evictor.wait(set_uid, per_minute)


def _has_to_go(pod: Object) -> bool:
    owner = (objects.controller_reference(pod) or {}).get("kind")
    return owner != "DaemonSet" and not objects.is_finished(pod)
