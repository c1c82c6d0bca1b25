"""What others do with their Targets, and profiles that change all the time, cost few looks."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from tests import computing
from tests.apiserver.server import APIServer
from tests.unit.targetsets.sets_environment import ALL, TargetSetsEnvironment
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.api.objects import Object
from vnode.targetsets import deciding, reporting
from vnode.targetsets.deciding import MadeTarget, SetFacts
from vnode.targetsets.selection import ProfileSelection
from vnode.targetsets.spec import RemovalPolicy, TargetSetSpec
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


async def test_of_profiles_that_are_not_believed_nothing_is_looked_at_or_kept(
    clock: Clock,
) -> None:
    env = TargetSetsEnvironment(clock, "east")
    env.add_set()
    async with env.leading() as sets:
        await asyncio.sleep(60)
        before = looks()
        for number in range(20):
            env.add_profile("east", "stranger", beat=str(number))
            await asyncio.sleep(2)

        assert looks() == before
        kept = sets._inventory.get("stranger/east")
        assert kept is not None
        assert kept.keys() == {"metadata"}
        assert kept["metadata"].keys() == {"name", "namespace", "uid", "resourceVersion"}


async def test_pods_that_change_all_the_time_are_awaited_by_a_look_a_second(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "a", "b")
    env.add_set(spec={**ALL, "removal": {"after": "10s"}})
    env.add_node("a")
    env.add_pods("a", 40)
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(20)
        assert 0 < env.pods("a") < 40
        before, beats, last = looks(), count(), env.server.all(kinds.PODS)[-1]

        def beat(pod: Object) -> None:
            pod["metadata"]["labels"] = {"beat": str(next(beats))}

        for _ in range(100):
            await asyncio.sleep(0.1)
            env.server.change(kinds.PODS, objects.name(last), objects.namespace(last), beat)

        assert 8 <= looks() - before <= 25  # evictions are looked at, too


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


def computed(targets: int) -> float:
    """Return the seconds that it takes to decide about so many Targets, and to say what follows;
    profiles of half of them are gone, and the others' Targets connect."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ago, names = now - timedelta(seconds=100), [f"c{number}" for number in range(targets)]
    made = {
        name: MadeTarget(name, f"fleet/{name}", ago if number % 2 else None, ago)
        for number, name in enumerate(names)
    }
    selected = {
        f"fleet/{name}": {"metadata": {"name": name, "namespace": "fleet"}} for name in names[::2]
    }
    wanted = TargetSetSpec(ProfileSelection(), RemovalPolicy.DRAIN)
    facts = SetFacts(wanted, selected, made, {}, {}, now)
    with computing.uncollected():
        began = time.thread_time()
        decision = deciding.decide(facts)
        listed = reporting.entries(decision, selected, made, {name: {} for name in made})
        assert reporting.states(decision, listed)["gone"] == targets // 2
        return time.thread_time() - began


def test_what_is_decided_of_a_target_looks_at_no_others() -> None:
    few = min(computed(300) for _ in range(3))
    assert computed(3000) < 40 * few  # of what looks at all for each, a hundred times as much


async def test_a_set_of_many_profiles_is_looked_at_in_slices(clock: Clock) -> None:
    class Busy(computing.WorkingClock):
        looks = 0

        def monotonic(self) -> float:
            self.looks += 1
            return super().monotonic() + 0.002 * self.looks

    env = TargetSetsEnvironment(Busy(clock), *(f"c{number}" for number in range(100)))
    env.add_set()
    async with env.leading():
        await asyncio.sleep(60)
        assert len(env.targets()) == 100
        before = looks()
        with computing.steps() as steps:
            env.add_profile("c7", beat="1")
            await asyncio.sleep(1.5)

        assert looks() > before
        assert len(steps) > 150 * (looks() - before)


async def test_a_set_that_makes_many_targets_holds_up_no_other(clock: Clock) -> None:
    """Nor does it remove any before all are made to which pods could go."""
    env = TargetSetsEnvironment(clock, *(f"c{number}" for number in range(200)))
    env.server.latency = lambda: 0.05
    env.add_profile("own", "team")
    env.add_set(spec={"profiles": {"namespace": "fleet", "selector": {}}})
    async with env.leading():
        await asyncio.sleep(1)
        env.add_set("small", namespace="team")
        await asyncio.sleep(6)
        assert env.server.find(kinds.TARGETS, "own", "team") is not None
        assert len(env.targets()) < 200
        await asyncio.sleep(60)
        assert len(env.targets()) == 200
