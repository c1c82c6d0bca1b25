"""What others do with their Targets, and profiles that change all the time, cost few looks."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.server import APIServer
from tests.unit.targetsets.sets_environment import TargetSetsEnvironment
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.targetsets.writing import TargetWriter
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime


def looks() -> float:
    """Return how often sets have been reconciled."""
    names = {"controller": "target-sets"}
    return sum(
        metrics.REGISTRY.get_sample_value("vnode_reconciles_total", {**names, "result": result})
        or 0.0
        for result in ("done", "delayed", "error")
    )


async def test_what_a_tenant_does_with_targets_has_no_cluster_wide_set_looked_at(
    clock: Clock,
) -> None:
    env = TargetSetsEnvironment(clock, "east")
    env.add_set()
    async with env.leading():
        await asyncio.sleep(60)
        before = looks()
        for number in range(20):
            metadata = {"name": f"t{number}", "namespace": "tenant"}
            env.server.add(kinds.TARGETS, {"metadata": metadata, "spec": {}})
            await asyncio.sleep(2)

        assert looks() == before


async def test_profiles_that_change_all_the_time_are_gone_through_once_a_second(
    clock: Clock,
) -> None:
    env = TargetSetsEnvironment(clock, "east", "west")
    env.add_set()
    async with env.leading():
        await asyncio.sleep(60)
        before = looks()
        for number in range(100):
            env.add_profile("east", beat=str(number))
            await asyncio.sleep(0.1)

        assert 8 <= looks() - before <= 12
        env.add_profile("new")
        await asyncio.sleep(1.5)
        assert "new" in [objects.name(target) for target in env.server.all(kinds.CLUSTER_TARGETS)]


async def test_of_sets_and_targets_that_are_gone_nothing_stays(clock: Clock) -> None:
    """Whoever administers a namespace may make sets anew, of which all Targets are refused."""
    server = APIServer("c1", clock)
    writer = TargetWriter(server.client(), clock)
    server.fail(Denied(403, "Forbidden", "no quota"), verb="create", kind=kinds.TARGETS, times=None)
    for number in range(3):
        obj = {"metadata": {"name": "all", "namespace": "team", "uid": str(number)}}
        assert await writer.create(obj, "east", "team/east") is not None
        writer.forget_set(str(number))

    target = {"metadata": {"name": "east", "namespace": "team", "uid": "t"}}
    await writer.remember(target, {"metadata": {"resourceVersion": "1"}})
    writer.forget_target("team/east")
    assert not writer._refused
    assert not writer._texts
