"""Pods go where scores are best, and wait for a score that lets them in."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.planned_sources import clouds, weighted
from tests.unit.pods.policies import Planned, add_replicas, places
from tests.unit.pods.targets import Target
from tests.unit.scores import served
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

GPU = {"source": "AddOn", "resource": "usage", "name": "gpu"}


def profile(**args: Any) -> Object:
    """Return a profile whose scores outweigh all else."""
    return {
        "plugins": {"enabled": [{"name": "ClusterScores", "weight": 100}]},
        "pluginConfig": [{"name": "ClusterScores", "args": args}],
    }


async def test_pods_follow_the_best_score_and_those_that_run_stay(clock: Any) -> None:
    targets = [Target(name, clock, cpu="100") for name in ("c2", "c3")]
    source = SourceCluster(clock, *targets, plugins=profile(scores=[GPU]))
    served.serve(source.server)
    served.put_add_on(source.server, "c2", gpu=-70)
    served.put_add_on(source.server, "c3", gpu=-80)
    async with source.running():
        for name in ("a", "b", "c"):
            source.add(name, cpu="1")

        await source.until_bound("a", "b", "c")
        assert {source.node_of(name) for name in ("a", "b", "c")} == {targets[0].node}
        served.put_add_on(source.server, "c2", gpu=-90)
        await asyncio.sleep(1)
        source.add("d", cpu="1")
        await source.until_bound("d")
        assert source.node_of("d") == targets[1].node
        assert source.node_of("a") == targets[0].node


async def test_a_pod_waits_for_a_condition_and_says_so(clock: Any) -> None:
    target = Target("c2", clock, cpu="100")
    wanted = {**GPU, "operator": "Ge", "values": [20]}
    source = SourceCluster(clock, target, plugins=profile(conditions=[wanted]))
    served.serve(source.server)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "there is no AddOnPlacementScore usage in namespace c2")
        served.put_add_on(source.server, "c2", gpu=19)
        await source.until_said("p", "score gpu is not >= 20")
        before = clock.monotonic()
        served.put_add_on(source.server, "c2", gpu=20)
        await source.until_bound("p")
        assert clock.monotonic() - before < 15  # the queue's back-off, and not a minute


async def test_a_score_that_is_renewed_wakes_nobody(
    clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target("c2", clock, cpu="100")
    wanted = {**GPU, "operator": "Ge", "values": [20]}
    source = SourceCluster(clock, target, plugins=profile(conditions=[wanted]))
    served.serve(source.server)

    def write(seconds: float, gpu: int) -> None:
        end = objects.timestamp(clock.now() + timedelta(seconds=seconds))
        served.put_add_on(source.server, "c2", until=end, gpu=gpu)

    write(600, 10)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "score gpu is not >= 20")
        await asyncio.sleep(15)
        cycles: list[str] = []
        schedule = source.framework.schedule

        def counted(pod: Object, *args: Any) -> Any:
            cycles.append(objects.name(pod))
            return schedule(pod, *args)

        monkeypatch.setattr(source.framework, "schedule", counted)
        for _ in range(20):
            write(600, 10)
            await asyncio.sleep(1)

        assert len(cycles) <= 1
        write(600, 20)
        await source.until_bound("p")


async def test_a_reserved_place_outlives_its_score(clock: Any) -> None:
    """The candidate itself takes the room of which the score tells."""

    def reserves_late(target: Target, candidate: Object) -> None:
        served.put_add_on(source.server, "c2", gpu=0)
        asyncio.get_running_loop().call_later(
            1, lambda: target.annotate(candidate, **{keys.IS_RESERVED: "true"})
        )

    target = Target("c2", clock, reserves_late, cpu="100")
    wanted = {**GPU, "operator": "Ge", "values": [20]}
    source = SourceCluster(clock, target, plugins=profile(conditions=[wanted]))
    served.serve(source.server)
    served.put_add_on(source.server, "c2", gpu=20)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_bound("p")
        assert target.asked("create") == 1


async def test_without_the_plugin_nothing_is_watched(clock: Any) -> None:
    target = Target("c2", clock, cpu="100")
    source = SourceCluster(clock, target)
    served.serve(source.server)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_bound("p")
        watched = {watch.kind for watch in source.server.watches()}
        assert watched.isdisjoint({*served.BOTH, kinds.CRDS})


async def test_a_plan_has_no_share_where_a_condition_does_not_hold(clock: Any) -> None:
    targets = clouds(clock, 9, 9, 9)
    plugins = profile(conditions=[{**GPU, "operator": "Ge", "values": [20]}])
    source = Planned(clock, weighted(targets, (1, 1, 1)), *targets, plugins=plugins)
    served.serve(source.server)
    for name, gpu in (("c1", 20), ("c2", 19), ("c3", 100)):
        served.put_add_on(source.server, name, gpu=gpu)

    async with source.running():
        pods = add_replicas(source, 6)
        await source.until_bound(*pods)
        assert places(source, pods) == {"c1": 3, "c3": 3}
        served.put_add_on(source.server, "c1", gpu=0)
        await asyncio.sleep(60)
        assert places(source, pods) == {"c1": 3, "c3": 3}  # what runs stays
