"""Tells why the cluster makes no ResourceClaims for a delegate, of the templates that it names.

Its controller manager does, and says by an Event if that is refused: by a quota, or for a claim
with `adminAccess` where the namespace lacks the label for that. kube-scheduler holds the pod in
PreEnqueue meanwhile, and writes no condition. So one is put in its place, for the source to hear.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

from vnode.api import device_claims, kinds, objects, scheduled_condition
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.pods import event_record
from vnode.pods.event_record import EventEntry

PATIENCE: Final = 3.0  # seconds in which claims are made, on a busy cluster
RECHECK: Final = 10.0  # seconds until the Events are read again

_OF_ONE_POD: Final = AnswerLimit(4 * 1024 * 1024, 100_000)
"""Of Events: the controller manager writes one, and counts in it."""

_REASON: Final = "FailedResourceClaimCreation"


log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Unmade:
    uid: str
    look_at: float  # monotonic
    condition: Object | None = None


class UnmadeClaims:
    """Remembers, by the keys of chaperons, for which delegates claims are not made."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._unmade: dict[str, _Unmade] = {}

    def forget(self, key: str) -> None:
        """Forget a chaperon that is gone."""
        self._unmade.pop(key, None)

    async def judge(self, pod: Object) -> tuple[Object, float | None]:
        """Return a delegate with a condition that says which claim it lacks; mostly as it is.

        Also the seconds until it is to be looked at again, None if no claim is missing.
        """
        key, uid = objects.key(pod), objects.uid(pod)
        template = device_claims.unmade(pod)
        if not template or objects.condition(pod, "PodScheduled") or objects.is_terminating(pod):
            self.forget(key)
            return pod, None

        now, known = self._clock.monotonic(), self._unmade.get(key)
        if known is None or known.uid != uid:
            known = self._unmade[key] = _Unmade(uid, now + PATIENCE)

        if known.look_at - now <= TICK:
            known.look_at = now + RECHECK
            known.condition = await self._condition(pod, template, known.condition)

        left = known.look_at - now
        if known.condition is None:
            return pod, left

        status = objects.status(pod)
        conditions = [*(status.get("conditions") or ()), known.condition]
        return {**pod, "status": {**status, "conditions": conditions}}, left

    async def _condition(self, pod: Object, template: str, known: Object | None) -> Object:
        """Return the condition; that of before if it says the same."""
        why = await self._why(pod) or "see that the controller manager of the target runs"
        text = f"no ResourceClaim was made of ResourceClaimTemplate {template}: {why}"
        condition = scheduled_condition.rejected(text, objects.timestamp(self._clock.now()))
        is_same = known is not None and known["message"] == condition["message"]
        return known if known is not None and is_same else condition

    async def _why(self, pod: Object) -> str:
        """Return what the last Event about that says, of those that are read; "" if none is."""
        selector = f"involvedObject.uid={objects.uid(pod)},reason={_REASON}"
        latest: EventEntry | None = None

        def note(event: Any) -> None:  # keeps nothing of the list: tenants write Events, too
            nonlocal latest
            entry = event_record.of_event(event) if isinstance(event, dict) else None
            if entry is not None and (latest is None or latest.last < entry.last):
                latest = entry

        try:
            await self._client.list(
                kinds.EVENTS,
                objects.namespace(pod),
                field_selector=selector,
                limit=_OF_ONE_POD,
                kept=note,
            )
        except VnodeError as error:
            log.debug("not all Events of %s were read: %s", objects.key(pod), error)

        return latest.message if latest is not None else ""
