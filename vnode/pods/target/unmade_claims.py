"""Tells why the cluster makes no ResourceClaims for a delegate, of the templates that it names.

Its controller manager does, and says by an Event if that is refused: by a quota, or for a claim
with `adminAccess` where the namespace lacks the label for that. kube-scheduler holds the pod in
PreEnqueue meanwhile, and writes no condition. So one is put in its place, for the source to hear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vnode.api import device_claims, kinds, objects, scheduled_condition
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import event_record

PATIENCE: Final = 3.0  # seconds in which claims are made, on a busy cluster
RECHECK: Final = 10.0  # seconds until the Events are read again

_REASON: Final = "FailedResourceClaimCreation"


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
        selector = f"involvedObject.uid={objects.uid(pod)},reason={_REASON}"
        try:
            events = await self._client.list(
                kinds.EVENTS, objects.namespace(pod), field_selector=selector
            )
        except VnodeError:
            return ""

        entries = [entry for entry in map(event_record.of_event, events) if entry is not None]
        return max(entries, key=lambda entry: entry.last).message if entries else ""
