"""Writes conditions into the status of override policies, and Events on them.

`Accepted` says whether the rules can be used at all, `Applicable` whether they could be applied to
the pods that they were tried on. How often a pod fails does not count.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import objects, status_conditions
from vnode.api.clock import Clock
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.overrides.overrides import PolicyOverrides
from vnode.overrides.policy import OverridePolicy, kind_of
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.status_reporter import StatusReporter
from vnode.telemetry import audit

ACCEPTED: Final = "Accepted"
APPLICABLE: Final = "Applicable"
_MESSAGE: Final = 1024  # characters; a policy may have 32 rules, and each its problem


def conditions(obj: Object, policy: OverridePolicy, failure: str, now: datetime) -> Objects:
    """Build the conditions of a policy; `failure` is what failed for a pod, "" for nothing."""
    accepted: tuple[bool, str, str] = (True, "Valid", "the policy is in force")
    if policy.problem:
        text = f"{policy.problem}; until that is mended, pods that it is for are not sent there"
        accepted = False, "Invalid", _cut(text)

    applicable: tuple[bool, str, str] = True, "NoFailure", "no pod is kept from a target by it"
    if failure:
        applicable = False, "PatchFailed", _cut(failure)

    found = [
        status_conditions.build(obj, ACCEPTED, *accepted, now),
        status_conditions.build(obj, APPLICABLE, *applicable, now),
    ]
    return [*found, status_conditions.ready(obj, found, now)]


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE else text[:_MESSAGE] + "..."


class PolicyReporter:
    """Writes the conditions of all policies; one for each term of a leader."""

    def __init__(
        self, client: Client, overrides: PolicyOverrides, events: EventRecorder, clock: Clock
    ) -> None:
        self._overrides = overrides
        self._clock = clock
        self._controller: Controller[str] = Controller(
            "override-policies",
            self._reconcile,
            subject=lambda key: audit.subject(kind_of(key), key, overrides.lookup(key)),
            workers=2,
            lane=objects.key_namespace,
            total=8,
        )
        self._reports = StatusReporter(
            client,
            "overridepolicies",
            write_limits.POLICIES,
            wake=self._controller.add,
            clock=clock,
            events=events,
            is_news=_is_news,
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
            self._reports.forget(key)
            return None

        if self._reports.pending(key, obj):
            return None

        found = conditions(obj, policy, self._overrides.failures.first(key), self._clock.now())
        status = {"conditions": status_conditions.merged(obj, *found)}
        return await self._reports.report(key, kind_of(key), obj, status)


_TURNED: Final = status_conditions.turned_unless(status_conditions.READY)


def _is_news(obj: Object, condition: Object) -> bool:
    """Tell whether a condition is worth an Event: that a new policy is as it should be is not."""
    is_new = objects.condition(obj, condition["type"]) is None
    good = is_new and condition["status"] == "True"
    return not good and _TURNED(obj, condition)
