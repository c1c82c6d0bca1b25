"""Has one of two gangs of different sources make way, where each has a part of what both need.

Sources do not know of each other. Candidates of a gang carry what it takes (`vnode.gangs.marks`);
where two are incomplete in this cluster for some seconds, and hold places, the candidates of the
lesser are marked as refused. Its source hears that as a rejection, gives them up, and tries another
target, or this one later.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, TypeAlias

from vnode.api import keys, kinds, objects, permissions
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Conflict
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.gangs import conflicts, marks
from vnode.gangs.conflicts import PATIENCE, ConflictTurns, GangInTarget
from vnode.gangs.marks import GangMark
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.telemetry import audit

_AGAIN: Final = 1.0  # seconds until gangs are looked at again
_AT_ONCE: Final = 8  # candidates that are marked as refused
_GangName: TypeAlias = tuple[str, str, str]
"""Namespace, UID of the source and name of a gang."""

_WHY: Final = "a gang of another source comes first here, and both have a part of what they need"
_ALL: Final = "all"  # the only key: which gang makes way depends on all others

log = logging.getLogger(__name__)


class GangConflicts:
    """Works in the leader of a target; `chaperons` are those of its cluster."""

    def __init__(self, client: Client, chaperons: Informer, clock: Clock) -> None:
        self._client = client
        self._chaperons = chaperons
        self._clock = clock
        # Since when it holds places without being complete.
        self._incomplete: dict[_GangName, float] = {}
        self._turns = ConflictTurns()
        # By key: the chaperons of gangs, and what they say of theirs.
        self._marked: dict[str, tuple[Object, GangMark]] = {}
        self._controller: Controller[str] = Controller(
            "gang-conflicts", self._reconcile, subject=audit.agent, workers=1
        )
        # Chaperons that are to be marked as refused, by key, and those whose marks the informer has
        # not seen: they count as if they were. A gang may have thousands; namespaces take turns.
        self._refused: set[str] = set()
        self._expectations = Expectations()
        self._refusals: Controller[str] = Controller(
            "gang-refusals",
            self._refuse,
            subject=self._subject,
            workers=_AT_ONCE,
            namespace=objects.key_namespace,
        )

    async def run(self) -> None:
        """Work until cancelled."""
        self._chaperons.subscribe(self._on_chaperon)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._controller.run(), name="gang-conflicts")
            group.create_task(self._refusals.run(), name="gang-refusals")

    def _subject(self, key: str) -> audit.Subject:
        chaperon, _ = self._marked.get(key, ({}, None))
        return audit.of_chaperon(key, chaperon)

    def _on_chaperon(self, old: Object | None, new: Object | None) -> None:
        key = objects.key(objects.latest(old, new))
        mark = marks.read(new) if new is not None else None
        if new is not None and mark is not None:
            self._marked[key] = new, mark
        elif self._marked.pop(key, None) is None:
            return

        if new is None:
            self._expectations.forget(key)

        self._controller.add_after(_ALL, _AGAIN)

    async def _reconcile(self, _key: str) -> float | None:
        now, gangs = self._clock.monotonic(), await self._gangs()
        incomplete = {name for name, gang in gangs.items() if gang.is_incomplete}
        self._incomplete = {name: self._incomplete.get(name, now) for name in incomplete}
        if len({source for _, source, _ in incomplete}) < 2:
            return None

        lasting = [gangs[n] for n, since in self._incomplete.items() if now - since >= PATIENCE]
        greatest, others = conflicts.lesser(lasting, self._turns.last(now))
        if others:
            self._turns.note(greatest, now)

        for gang in others:
            log.info("gang %s of source %s makes way for another one", gang.mark.id, gang.source)
            self._refused.update(gang.open)
            for key in gang.open:
                self._refusals.add(key)

        return _AGAIN

    async def _gangs(self) -> dict[_GangName, GangInTarget]:
        """Return what is here of each gang. What a source says of its gang counts in the namespace
        of its chaperon only: another one may say anything, and of any number of gangs."""
        found: dict[_GangName, GangInTarget] = {}
        marked = list(self._marked.items())
        async for key, (chaperon, mark) in in_slices(marked, self._clock):
            annotations = objects.annotations(chaperon)
            source = annotations.get(keys.PARENT_CLUSTER_UID, "")
            if objects.is_terminating(chaperon) or self._is_refused(key, chaperon):
                continue

            namespace = objects.key_namespace(key)
            name = namespace, source, mark.id
            gang = found.setdefault(name, GangInTarget(namespace, source, mark))
            is_allowed = permissions.is_allowed(chaperon)
            gang.allowed += is_allowed
            gang.reserved += is_allowed or keys.IS_RESERVED in annotations
            if not is_allowed:
                gang.open.append(key)

        return found

    def _is_refused(self, key: str, chaperon: Object) -> bool:
        if key in self._refused or self._expectations.pending(key, chaperon):
            return True

        return keys.GANG_REFUSED in objects.annotations(chaperon)

    async def _refuse(self, key: str) -> None:
        chaperon, _ = self._marked.get(key, ({}, None))
        annotations = {keys.GANG_REFUSED: _WHY, keys.IS_RESERVED: None}
        body = {"metadata": {"uid": objects.uid(chaperon), "annotations": annotations}}
        try:
            if chaperon:
                await self._expectations.patch(self._client, kinds.POD_CHAPERONS, chaperon, body)
        except Conflict:
            log.debug("chaperon %s is gone", key)
        except ApiError as error:  # the others make way
            log.info("chaperon %s does not make way: %s", key, error)
        finally:
            self._refused.discard(key)
