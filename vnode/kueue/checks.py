"""Knows which AdmissionChecks are ours, and says in their status that they are answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects, status_conditions
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.runtime import write_limits
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_informer import ServedInformer
from vnode.runtime.status_reporter import StatusReporter

ACTIVE: Final = "Active"


class PlacementChecks:
    """The AdmissionChecks whose controller is vnode; `changed` is called when they are others."""

    def __init__(
        self, client: Client, wake: Callable[[str], None], changed: Callable[[], None], clock: Clock
    ) -> None:
        self._clock = clock
        self._wake = wake
        self._changed = changed
        self._checks = ServedInformer(client, kinds.ADMISSION_CHECKS, self._on_check)
        self._reports: StatusReporter[str] = StatusReporter(
            client,
            "admissionchecks",
            write_limits.POLICIES,
            wake=wake,
            clock=clock,
            has_generation=False,
        )
        self.names: frozenset[str] = frozenset()
        """Those that are answered."""

    def watch(self, tasks: KeyedTasks[str]) -> None:
        """Watch in these tasks."""
        self._checks.watch(tasks)

    def may_reject(self, name: str) -> bool:
        """Tell whether a workload may be refused for good."""
        check = self._checks.get(name) or {}
        return keys.NEVER_REJECT not in objects.annotations(check)

    async def report(self, name: str) -> float | None:
        """Write the condition Active of a check of ours."""
        check = self._checks.get(name)
        if check is None or not _is_ours(check):
            self._reports.forget(name)
            return None

        if self._reports.pending(name, check):
            return None

        problem = _problem(check)
        said = (
            (False, "BadParameters", problem)
            if problem
            else (True, "Active", "vnode answers it by what targets have free")
        )
        condition = status_conditions.build(check, ACTIVE, *said, self._clock.now())
        status = {"conditions": status_conditions.merged(check, condition)}
        return await self._reports.report(name, kinds.ADMISSION_CHECKS, check, status)

    def _on_check(self, old: Object | None, new: Object | None) -> None:
        known = list(self._checks.values())
        names = frozenset(objects.name(c) for c in known if _is_ours(c) and not _problem(c))
        for check in (new,) if new is not None else known:
            if _is_ours(check):
                self._wake(objects.name(check))

        if names != self.names:
            self.names = names
            self._changed()


def _is_ours(check: Object) -> bool:
    return objects.spec(check).get("controllerName") == keys.PLACEMENT_CHECK


def _problem(check: Object) -> str:
    if objects.spec(check).get("parameters"):
        return "it takes no spec.parameters: remove them"

    return ""
