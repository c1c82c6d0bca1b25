"""Events about one tenant's objects do not delay those of anybody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import pytest

from tests import tenant_scenarios
from tests.tenant_scenarios import TenantScenario
from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.events import WARNING, EventRecorder

pytestmark = pytest.mark.looptime


class Written:
    """A cluster that takes Events; it says of which namespaces."""

    name = "source"

    def __init__(self) -> None:
        self.namespaces: list[str] = []

    async def create(self, _kind: Any, body: Object) -> None:
        """Take a new Event."""
        self.namespaces.append(objects.namespace(body))

    async def patch(self, _kind: Any, _name: str, _body: Object, namespace: str) -> None:
        """Take a count."""
        self.namespaces.append(namespace)


@dataclass(frozen=True)
class MovedClock:
    """A clock at a moment that the test chooses."""

    clock: Clock
    moment: float = 0.0

    def now(self) -> Any:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.moment


def a_flood_of_events(size: int, clock: Clock) -> TenantScenario:
    """Record an Event of a bystander, which is among the next two that are written."""
    cluster = Written()
    recorder = EventRecorder(cluster, "vnode", MovedClock(clock))  # type: ignore[arg-type]

    def write(times: int) -> None:
        for _ in range(times):
            found = recorder._queue.next(recorder._clock.monotonic())
            if found is None:
                return

            with pytest.raises(StopIteration):
                recorder._write(*found).send(None)

    def about(namespace: str, name: str) -> Object:
        return {"kind": "Pod", "namespace": namespace, "name": name, "uid": name}

    for moment in (0.0, 20.0, 40.0):
        recorder._clock = MovedClock(clock, moment)  # type: ignore[assignment]
        for number in range(2 * size):
            recorder.event(about("team-a", f"p{number}"), WARNING, "FailedScheduling", "no")
            if moment == 0.0:
                write(1)

    numbers = count()

    def record() -> None:
        before = len(cluster.namespaces)
        recorder.event(about("team-c", f"w{next(numbers)}"), WARNING, "FailedScheduling", "no")
        write(2)
        assert "team-c" in cluster.namespaces[before:]

    def remove() -> None:
        recorder._clock = MovedClock(clock, 5_000.0)  # type: ignore[assignment]
        write(4 * size)
        recorder._clock = MovedClock(clock, 9_000.0)  # type: ignore[assignment]
        recorder._forget_old(9_000.0)

    return TenantScenario(record, remove, lambda: len(recorder._series) + len(recorder._queue))


SCENARIOS: Final = (a_flood_of_events,)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
async def test_what_one_tenant_has_makes_no_step_longer_and_leaves_nothing(
    scenario: Callable[[int, Clock], TenantScenario], clock: Clock
) -> None:
    tenant_scenarios.check(scenario, clock)
