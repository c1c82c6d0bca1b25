"""Writes conditions (`conditions`) into the status of override policies, and Events on them."""

from __future__ import annotations

from typing import Final

from vnode.api import objects, status_conditions
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.overrides import conditions
from vnode.overrides.overrides import PolicyOverrides
from vnode.overrides.policy import kind_of
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.status_reporter import StatusReporter
from vnode.telemetry import audit


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

        failure = self._overrides.failures.first(key)
        found = conditions.build(obj, policy, failure, self._clock.now())
        status = {"conditions": status_conditions.merged(obj, *found)}
        return await self._reports.report(key, kind_of(key), obj, status)


_TURNED: Final = status_conditions.turned_unless(status_conditions.READY)


def _is_news(obj: Object, condition: Object) -> bool:
    """Tell whether a condition is worth an Event: that a new policy is as it should be is not."""
    is_new = objects.condition(obj, condition["type"]) is None
    good = is_new and condition["status"] == "True"
    return not good and _TURNED(obj, condition)
