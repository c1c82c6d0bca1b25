"""Which policies are in force, and who learns of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.unit.placement.world import SETTLED, World
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, NotFound, VnodeError
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

POD: Object = {"metadata": {"name": "p", "namespace": "default", "labels": {"app": "web"}}}
WEB = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize("error", [NotFound(404, "NotFound", ""), Denied(403, "Forbidden", "")])
async def test_without_the_kinds_there_are_no_policies_and_nobody_waits(
    clock: Clock, error: VnodeError
) -> None:
    world = World(clock, "a")
    for kind in (kinds.PLACEMENT_POLICIES, kinds.CLUSTER_PLACEMENT_POLICIES):
        world.server.fail(error, verb="list", kind=kind, times=None)

    async with world.running():
        assert not world.policies
        assert world.policies.of(POD) is None


async def test_kinds_that_come_later_are_found(clock: Clock) -> None:
    world = World(clock, "a")
    fault = world.server.fail(
        NotFound(404, "NotFound", ""), verb="list", kind=kinds.PLACEMENT_POLICIES, times=None
    )
    world.add_policy(selector=WEB)
    async with world.running():
        assert not world.policies
        fault.clear()
        await asyncio.sleep(SETTLED)
        assert world.policies


async def test_listeners_hear_of_each_change_of_what_is_in_force(clock: Clock) -> None:
    world = World(clock, "a")
    async with world.running():
        heard = list[str]()
        world.policies.subscribe(lambda: heard.append(str(world.policies.of(POD))))
        world.add_policy(selector=WEB)
        await asyncio.sleep(SETTLED)
        assert [text.partition(",")[0] for text in heard] == ["Policy(name='placementpolicy/web'"]
        assert world.accepted()[0] == "True", "a status was written, which is no news"

        def fill(policy: Object) -> None:
            policy["spec"]["mode"] = "Fill"

        world.server.change(kinds.PLACEMENT_POLICIES, "web", "default", fill)
        await asyncio.sleep(SETTLED)
        world.server.remove(kinds.PLACEMENT_POLICIES, "web", "default")
        await asyncio.sleep(SETTLED)
        assert len(heard) == 3
        assert "Mode.FILL" in heard[1]
        assert heard[2] == "None"


async def test_a_policy_is_in_force_while_its_clusters_exist(clock: Clock) -> None:
    world = World(clock, "a")
    world.add_policy(selector=WEB, targets=[{"cluster": "a"}, {"cluster": "b"}])
    async with world.running():
        assert not world.policies
        status, reason, message = world.accepted()
        assert (status, reason) == ("False", "UnknownCluster")
        assert "spec.targets[1].cluster: there is no Target or ClusterTarget b" in message
        assert "there are: a, admiralty-a" in message
        world.add_target("b")
        await asyncio.sleep(SETTLED)
        assert world.policies.of(POD)
        assert world.accepted()[0] == "True"
        world.server.remove(kinds.CLUSTER_TARGETS, "b")
        await asyncio.sleep(SETTLED)
        assert world.policies.of(POD) is None


async def test_a_policy_cannot_name_the_target_of_another_namespace(clock: Clock) -> None:
    world = World(clock)
    world.add_target("a", "other")
    world.add_policy(selector=WEB, clusters={"names": ["a"]})
    world.add_policy("all", "", selector=WEB, clusters={"names": ["a"]})
    async with world.running():
        assert "(there are: none)" in world.accepted()[2]
        found = world.policies.of(POD)
        assert found is not None
        assert found.name == "clusterplacementpolicy/all"


async def test_an_invalid_policy_hurts_no_other(clock: Clock) -> None:
    world = World(clock, "a")
    world.add_policy("bad", selector=WEB, priority=9, targets=[{"weight": 1}])
    world.add_policy(selector=WEB)
    async with world.running():
        found = world.policies.of(POD)
        assert found is not None
        assert found.name == "placementpolicy/web"
        assert world.accepted("bad") == (
            "False",
            "Invalid",
            "spec.targets[0]: give exactly one of cluster and selector",
        )


async def test_a_drain_ends_at_its_moment_and_who_schedules_hears_of_it(clock: Clock) -> None:
    world = World(clock, "a", "b")
    at, later = (clock.now() + timedelta(seconds=seconds) for seconds in (100, 5000))
    drains = [
        {"cluster": "a", "until": objects.timestamp(at)},
        {"cluster": "b", "until": objects.timestamp(later), "maxReplicas": 3},
    ]
    world.add_policy(selector=WEB, drain=drains)
    async with world.running():
        heard = list[list[str]]()

        def changed() -> None:
            policy = world.policies.of(POD)
            heard.append([drain.cluster for drain in policy.drains] if policy else [])

        world.policies.subscribe(changed)
        assert world.accepted()[0] == "True"
        await asyncio.sleep(at.timestamp() - clock.now().timestamp() - 1)
        assert heard == []
        await asyncio.sleep(1.5)
        assert heard == [["b"]]
        await asyncio.sleep(5000)
        assert heard == [["b"], []]


async def test_a_drain_needs_its_cluster(clock: Clock) -> None:
    world = World(clock, "a")
    world.add_policy(selector=WEB, drain=[{"cluster": "x"}])
    async with world.running():
        _, reason, message = world.accepted()
        assert reason == "UnknownCluster"
        assert message.startswith("spec.drain[0].cluster: there is no Target or ClusterTarget x")
