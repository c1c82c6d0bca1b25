"""Answers the candidate scheduler when a delegate could preempt other pods.

kube-scheduler has found on which nodes, and whom. If the source only asks, the best of these nodes
is written to the chaperon, and the scheduler is told that there is none; else it may go on, on that
node, where a nominated pod then keeps the room (`nominations`). The chaperon is written before the
answer, so that the source reads it with the rejection at the latest, and no round is forgotten.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from vnode.api import keys, kinds, objects, permissions
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods import preemption
from vnode.pods.target import preemption_request
from vnode.pods.target.nominations import Nominations
from vnode.pods.target.preemption_request import PreemptionRequest, SentMetadata
from vnode.telemetry import audit

_NOWHERE: Final[dict[str, Any]] = {"NodeNameToMetaVictims": {}}

log = logging.getLogger(__name__)


class Preempting:
    """Answers `preempt`."""

    def __init__(self, client: Client, chaperons: Informer, clock: Clock) -> None:
        self._client = client
        self._chaperons = chaperons
        self._clock = clock
        self._nominations = Nominations(client)

    async def answer(self, request: PreemptionRequest) -> dict[str, Any]:
        """Let the delegate preempt, or tell its source what that would cost, and no more.

        What no chaperon controls is never bound, so that nobody is to end for it: whoever names
        this scheduler in a pod of their own would have others preempted again and again.
        """
        meta = request.pod.metadata
        owner = next((o.uid for o in meta.owner_references or () if o.controller), "")
        key = objects.join_key(meta.namespace, meta.name)
        chaperon: Object = self._chaperons.store.get(key) or {}
        if objects.uid(chaperon) != owner:  # this replica has not seen it yet
            chaperon = {}

        subject = audit.of_chaperon(key, chaperon, uid=owner)
        if not owner or keys.PLACEHOLDER in objects.annotations(chaperon):  # it will not run here
            return _NOWHERE

        cheapest = preemption_request.least(request)
        # One that is allowed to run has its proxy here for good: it asks nobody any more.
        decided = permissions.is_allowed(chaperon)
        mark = meta.annotations.preemption if meta.annotations else ""
        if decided or mark != preemption.ASKS:
            if cheapest is None:
                return preemption_request.go_on(request)

            node, _victims = cheapest
            with audit.on_behalf_of(subject):
                may_go_on = await self._begin(meta, owner, chaperon, node)

            return preemption_request.go_on(request, node) if may_go_on else _NOWHERE

        if cheapest is not None:
            text = preemption.encode(cheapest[1])
            if text != objects.annotations(chaperon).get(keys.VICTIMS):
                with audit.on_behalf_of(subject):
                    await self._annotate(meta, owner, {keys.VICTIMS: text})

        return _NOWHERE

    async def _begin(self, meta: SentMetadata, owner: str, chaperon: Object, node: str) -> bool:
        """Note that others are preempted on a node, and have the room kept; False if they stay."""
        rounds, now = preemption.rounds(chaperon), self._clock.now()
        if not rounds.may_go_on(now):
            log.info("%s/%s has to pause: others took the room", meta.namespace, meta.name)
            return False

        noted = {keys.PREEMPTED: rounds.next(node, now).encode()}
        if not await self._annotate(meta, owner, noted):
            return False

        await self._nominations.keep(meta.namespace, meta.name, owner, node)
        return True

    async def _annotate(self, meta: SentMetadata, owner: str, noted: dict[str, str]) -> bool:
        body = {"metadata": {"uid": owner, "annotations": noted}}
        try:
            await self._client.patch(kinds.POD_CHAPERONS, meta.name, body, meta.namespace)
        except VnodeError as error:
            log.info("%s/%s may not preempt: %s", meta.namespace, meta.name, error)
            return False

        return True
