"""Removes Targets whose profiles are gone: marked, cordoned, drained, and deleted when empty.

`deciding` has said which are at which step. What the guard against a broken inventory has to count
is written on the set before a Target goes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.runtime.expectations import Expectations
from vnode.runtime.served_informer import ServedInformer
from vnode.targetsets import deciding, spec
from vnode.targetsets.deciding import SetDecision, SetFacts
from vnode.targetsets.draining import NodeDrains
from vnode.targetsets.writing import TargetWriter

_RETRY_DELAY: Final = 5.0  # seconds until a profile is asked for again that may not be gone

log = logging.getLogger(__name__)


class Removals:
    """Goes on with the removals of all sets; `inventory` has the profiles."""

    def __init__(
        self,
        client: Client,
        inventory: ServedInformer,
        drains: NodeDrains,
        writer: TargetWriter,
        expectations: Expectations,
        clock: Clock,
    ) -> None:
        self._client = client
        self._inventory = inventory
        self._drains = drains
        self._writer = writer
        self._expectations = expectations
        self._clock = clock
        self._draining: dict[str, str] = {}  # virtual node -> the set that drains it

    def on_pod(self, old: Object | None, new: Object | None) -> str | None:
        """Return the key of the set that waits for a pod to leave its node, if there is one."""
        self._drains.on_pod(old, new)
        return self._draining.get(objects.node_name(objects.latest(old, new)))

    def forget(self, key: str) -> None:
        """Wait for the pods of a set's virtual nodes no longer."""
        self._draining = {node: of for node, of in self._draining.items() if of != key}

    async def go_on(
        self,
        key: str,
        obj: Object,
        facts: SetFacts,
        made: Mapping[str, Object],
        decision: SetDecision,
    ) -> float | None:
        """Go on with the removal of Targets; return when to look again."""
        waits: list[float] = []
        for name in decision.back:
            await self._drains.uncordon(_node(obj, name))
            await self._writer.mark(made[name], None)

        for name in decision.mark:
            profile = facts.made[name].profile
            if self._inventory.get(profile) or await self._inventory.is_deleted(profile):
                await self._writer.mark(made[name], facts.now)
                await self._drains.cordon(_node(obj, name))
                log.info("target %s: its profile %s is gone", name, profile)
            else:
                waits.append(_RETRY_DELAY)

        async for name in in_slices(decision.cordoned, self._clock):
            await self._drains.cordon(_node(obj, name))

        self.forget(key)
        if await self._record_removals(obj, facts, decision):
            return None  # its event wakes this set

        async for name in in_slices(decision.drain, self._clock):  # each may have many pods
            node = _node(obj, name)
            self._draining[node] = key
            await self._drains.cordon(node)
            if not (left := await self._drains.left(node)):
                await self._writer.delete(made[name])
                continue

            wait = await self._drains.evict(node, left, objects.uid(obj), facts.spec.per_minute)
            if wait is not None:
                waits.append(wait)

        return min(waits, default=None)

    async def _record_removals(self, obj: Object, facts: SetFacts, decision: SetDecision) -> bool:
        """Record on a set, before a Target goes, that the guard is to count it; tell whether that
        was due. It lasts, since another leader may have to count it."""
        known = {n: since for n, since in facts.removed.items() if deciding.is_recent(since, facts)}
        going = {n: since for n in decision.drain if (since := facts.made[n].gone_since)}
        news = {n: since for n, since in going.items() if deciding.is_recent(since, facts)}
        if facts.confirmed or news.keys() <= known.keys():
            return False

        text = spec.removed_text(known | news)
        body = {"metadata": {"annotations": {keys.REMOVED_TARGETS: text}}}
        await self._expectations.patch(self._client, spec.kind_of(obj), obj, body)
        return True


def _node(obj: Object, name: str) -> str:
    return TargetKey(objects.namespace(obj), name).node_name
