"""One tenant's workloads do not make an event of anybody longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests import tenant_scenarios
from tests.tenant_scenarios import TenantScenario, sizes
from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.planning.workload_counts import Workloads

pytestmark = pytest.mark.looptime


def owned(name: str, kind: str = "ReplicaSet", **more: Any) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "r", "uid": "r", "controller": True}
    metadata = {
        "name": name,
        "namespace": "team-a",
        "uid": f"team-a/{name}",
        "labels": {"app": "web"},
        "ownerReferences": [owner],
        **more,
    }
    return {"metadata": metadata, "spec": {"nodeName": "admiralty-gpu"}, "status": {}}


def counted(workloads: Workloads) -> int:
    return sizes(workloads._groups, workloads._pods, workloads._namespaces)


def ever_new_groupings(size: int, _clock: Clock) -> TenantScenario:
    """Change a pod whose policy has had that many values of `groupBy`."""
    workloads = Workloads(lambda _uid: ())
    given = owned("web")
    workloads.set(given)
    for number in range(size):
        label = f"example.com/k{number}"
        workloads.of(given, label)
        workloads.keep("team-a", lambda _namespace, label=label: {label})

    def remove() -> None:
        workloads.remove(objects.uid(given))
        workloads.keep("", lambda _namespace: ())

    return TenantScenario(lambda: workloads.set(given), remove, lambda: counted(workloads))


def replicas_that_nobody_replaces(size: int, _clock: Clock) -> TenantScenario:
    """Create a pod of a StatefulSet, of which others were deleted and not replaced."""
    workloads = Workloads(lambda _uid: ())
    workloads.of(owned("web", "StatefulSet"), "")
    given = [owned(f"w{n}", "StatefulSet") for n in range(size)]
    for each in given:
        workloads.set(each)
        ended = {**each["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        workloads.set({**each, "metadata": ended})
        workloads.remove(objects.uid(each))

    new = owned("new", "StatefulSet")

    def remove() -> None:
        workloads.remove(objects.uid(new))
        workloads.keep("", lambda _namespace: ())

    return TenantScenario(lambda: workloads.set(new), remove, lambda: counted(workloads))


SCENARIOS: Final = (
    ever_new_groupings,
    replicas_that_nobody_replaces,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.__name__)
async def test_what_one_tenant_has_makes_no_step_longer_and_leaves_nothing(
    scenario: Callable[[int, Clock], TenantScenario], clock: Clock
) -> None:
    tenant_scenarios.check(scenario, clock)
