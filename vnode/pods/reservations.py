"""Reserves candidates: a place is found, and held until the source decides.

The candidate scheduler on a real node, or our own scheduler in the next cluster of a chain, finds
the place. Then the chaperon is marked (is-reserved), and the binding waits for the source to allow
it. The chaperons are the only state, but for what a source was told on a stream
(`streams`): that is written to them once the stream ends, or if the source does not acknowledge it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final, NoReturn

from vnode.api import keys, kinds, objects, permissions
from vnode.api.errors import Conflict, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods import results
from vnode.pods.streams import SourceStreams
from vnode.runtime.fair_slots import FairSlots
from vnode.telemetry import turn_waits

TIMEOUT: Final = 30.0  # seconds that a reservation is held, as Admiralty's PreBind has it

SLOW: Final = 2.0
"""Seconds after which a reservation is written that a source has not acknowledged."""

SILENT: Final = 10.0
"""Seconds after which one is that it has acknowledged: its stream may be gone unnoticed."""

_RESERVING: Final = 16  # reservations that are being written at any moment


class Refusal(VnodeError):
    """Reports why a candidate is not bound; its scheduler tries again."""


class CandidateGone(Refusal):
    """Reports that the chaperon is not there any more, or is being deleted."""


class Reservations:
    """Reserves candidates of this cluster, by the keys of their chaperons."""

    def __init__(
        self,
        client: Client,
        chaperons: Informer,
        *,
        streams: SourceStreams | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._client = client
        self._streams = streams or SourceStreams(chaperons)
        self.chaperons = chaperons
        self._timeout = timeout
        # Bounded: a candidate that is allowed must not wait behind a burst of new ones. Namespaces
        # take turns.
        waits = turn_waits.of("reservations")
        self._reserving: FairSlots[str] = FairSlots(_RESERVING, waited=waits.note)
        self._waiting: dict[str, set[asyncio.Event]] = {}  # by chaperon key; no empty sets
        chaperons.subscribe(self._on_chaperon)

    async def allowed(self, pod: Object) -> None:
        """Return once the source has allowed the delegate; Refusal if it does not in time.

        While this waits, the candidate is reserved, whatever its chaperon had before. A pod that no
        chaperon controls is refused too, and at once a placeholder, one of a gang that makes way,
        or a pod that has finished.
        """
        key = objects.key(pod)
        owner = objects.controller_uid(pod)
        if not owner or owner != objects.uid(self._live(key)):
            raise Refusal(f"{key} is not a candidate of this cluster: no PodChaperon controls it")

        candidate = self._live(key, owner)
        if results.is_told(candidate):
            raise Refusal(f"{key} has finished: its result stays, and it does not run again")

        event = asyncio.Event()
        self._waiting.setdefault(key, set()).add(event)
        try:
            async with asyncio.timeout(self._timeout):
                while not permissions.is_allowed(chaperon := self._live(key, owner)):
                    event.clear()
                    annotations = objects.annotations(chaperon)
                    if keys.PLACEHOLDER in annotations or keys.GANG_REFUSED in annotations:
                        await self._refuse(chaperon)

                    if keys.IS_RESERVED not in annotations and not self._streams.reserve(chaperon):
                        await self._write(chaperon)

                    await self._change(event, chaperon)

            self._streams.confirm(candidate)
        except TimeoutError:
            await self._withdraw(self._live(key, owner))
            raise Refusal(f"the source did not allow {key} within {self._timeout:.0f} s") from None
        finally:
            self._streams.settle(candidate)
            self._waiting[key].discard(event)
            if not self._waiting[key]:
                del self._waiting[key]

    async def _change(self, event: asyncio.Event, chaperon: Object) -> None:
        """Wait for the chaperon to change; write one that is not acknowledged.

        A source that has acknowledged it decides when it can: in a burst that takes seconds.
        """
        if not self.chaperons.is_assumed(objects.uid(chaperon), keys.IS_RESERVED):
            await event.wait()
            return

        for seconds in (SLOW, SILENT - SLOW):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await event.wait()
                    return

            if not self._streams.is_acknowledged(chaperon):
                break

        await self._write(self._live(objects.key(chaperon), objects.uid(chaperon)))

    async def _write(self, chaperon: Object) -> None:
        async with self._reserving.take(objects.namespace(chaperon)):
            await self._annotate(chaperon, {keys.IS_RESERVED: "true"})

    async def _refuse(self, chaperon: Object) -> NoReturn:
        """Refuse a placeholder, whose pod runs elsewhere, or a pod of a gang that makes way.

        Here it is not to take anybody's room.
        """
        await self._withdraw(chaperon)
        why = objects.annotations(chaperon).get(keys.GANG_REFUSED, keys.COULD_START)
        raise Refusal(f"{objects.key(chaperon)} {why}")

    async def _withdraw(self, chaperon: Object) -> None:
        """Take a reservation back: of whoever was told, and from the chaperon."""
        was_told = self.chaperons.is_assumed(objects.uid(chaperon), keys.IS_RESERVED)
        self._streams.withdraw(chaperon)
        if keys.IS_RESERVED in objects.annotations(chaperon) and not was_told:
            await self._annotate(chaperon, {keys.IS_RESERVED: None})

    async def is_gone(self, pod: Object) -> bool:
        """Ask the API server whether the chaperon of a delegate is gone, or is being deleted."""
        name, namespace = objects.name(pod), objects.namespace(pod)
        try:
            chaperon = await self._client.get(kinds.POD_CHAPERONS, name, namespace)
        except NotFound:
            return objects.controller_uid(pod) != ""

        is_other = objects.uid(chaperon) != objects.controller_uid(pod)
        return is_other or objects.is_terminating(chaperon)

    def _live(self, key: str, uid: str | None = None) -> Object:
        """Return the chaperon of that key, and that UID if there is one; Refusal if it ends."""
        chaperon = self.chaperons.store.get(key)
        is_other = uid is not None and uid != objects.uid(chaperon or {})
        if chaperon is None or is_other or objects.is_terminating(chaperon):
            raise CandidateGone(f"the PodChaperon of {key} is gone")

        return chaperon

    async def _annotate(self, chaperon: Object, annotations: dict[str, str | None]) -> None:
        metadata = {
            "uid": objects.uid(chaperon),
            "annotations": annotations,
            # Emptied, so that the API server need not track the fields of each later write.
            "managedFields": [{}],
        }
        body = {"metadata": metadata}
        try:
            await self._client.patch(
                kinds.POD_CHAPERONS, objects.name(chaperon), body, objects.namespace(chaperon)
            )
        except (NotFound, Conflict) as error:
            raise CandidateGone(f"the PodChaperon of {objects.key(chaperon)} is gone") from error

    def _on_chaperon(self, old: Object | None, new: Object | None) -> None:
        for event in self._waiting.get(objects.key(objects.latest(old, new)), ()):
            event.set()
