"""Writes conditions into the status of override policies, and Events on them.

`Accepted` says whether the rules can be used at all, `Applicable` whether they could be applied to
the pods that they were tried on. Only the leader writes, only what differs, and no more often than
`write_limits` says: how often a pod fails does not count.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from vnode.api import kinds, objects, status_conditions
from vnode.api.clock import Clock
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.overrides.overrides import PolicyOverrides
from vnode.overrides.policy import OverridePolicy, kind_of, name_of
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.runtime.write_limits import WriteLimiter

ACCEPTED: Final = "Accepted"
APPLICABLE: Final = "Applicable"
_MESSAGE: Final = 1024  # characters; a policy may have 32 rules, and each its problem

log = logging.getLogger(__name__)


def conditions(obj: Object, policy: OverridePolicy, failure: str, now: datetime) -> Objects:
    """Build the conditions of a policy; `failure` is what failed for a pod, "" for nothing."""
    accepted: tuple[bool, str, str] = (True, "Valid", f"{len(policy.rules)} rules are in force")
    if policy.problem:
        text = f"{policy.problem}; until that is mended, pods that it is for are not sent there"
        accepted = False, "Invalid", _cut(text)

    applicable: tuple[bool, str, str] = True, "NoFailure", "no pod is kept from a target by it"
    if failure:
        applicable = False, "PatchFailed", _cut(failure)

    return [
        status_conditions.build(obj, ACCEPTED, *accepted, now),
        status_conditions.build(obj, APPLICABLE, *applicable, now),
    ]


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE else text[:_MESSAGE] + "..."


class PolicyReporter:
    """Writes the conditions of all policies; one for each term of a leader."""

    def __init__(
        self, client: Client, overrides: PolicyOverrides, events: EventRecorder, clock: Clock
    ) -> None:
        self._client = client
        self._overrides = overrides
        self._events = events
        self._clock = clock
        self._controller: Controller[str] = Controller(
            "override-policies", self._reconcile, workers=2, lane=_namespace_of, total=8
        )
        self._expectations = Expectations(self._controller.add)
        self._limiter: WriteLimiter[str] = WriteLimiter(
            kinds.OVERRIDE_POLICIES.plural, write_limits.POLICIES, clock
        )

    async def run(self) -> None:
        """Write until cancelled."""
        self._overrides.failures.subscribe(self._controller.add)
        for informer in self._overrides.informers:
            informer.subscribe_by_key(self._controller.add)

        await self._controller.run()

    async def _reconcile(self, key: str) -> float | None:
        obj, policy = self._overrides.lookup(key), self._overrides.get(key)
        if obj is None or policy is None:
            self._expectations.forget(key)
            self._limiter.forget(key)
            return None

        if self._expectations.pending(key, obj):
            return None

        now, failure = self._clock.now(), self._overrides.failures.first(key)
        found = conditions(obj, policy, failure, now)
        merged = status_conditions.merged(obj, *found)
        if merged is None:
            return None

        if wait := self._limiter.wait(key):
            return wait

        self._limiter.written(key)
        body = objects.status_patch(obj, {"conditions": merged})
        await self._expectations.patch(
            self._client, kind_of(key), obj, body, key=key, subresource="status"
        )
        self._record_events(key, obj, found)
        return None

    def _record_events(self, key: str, obj: Object, found: Objects) -> None:
        kind = kind_of(key)
        about = objects.reference(obj, kind.kind, kind.api_version)
        for condition in found:
            holds, known = condition["status"] == "True", objects.condition(obj, condition["type"])
            if not status_conditions.turned(obj, condition) or (holds and known is None):
                continue  # that a new policy is as it should be is no news

            log.info("%s: %s", name_of(key), condition["message"])
            type_ = NORMAL if holds else WARNING
            self._events.event(about, type_, condition["reason"], condition["message"])


def _namespace_of(key: str) -> str:
    return objects.split_key(key)[0]
