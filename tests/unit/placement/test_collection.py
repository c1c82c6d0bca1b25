"""Which policies are in force, and who learns of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.unit.placement.environment import SETTLED, PlacementEnvironment
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
    env = PlacementEnvironment(clock, "a")
    for kind in (kinds.PLACEMENT_POLICIES, kinds.CLUSTER_PLACEMENT_POLICIES):
        env.server.fail(error, verb="list", kind=kind, times=None)

    async with env.running():
        assert not env.policies
        assert env.policies.of(POD) is None


async def test_kinds_that_come_later_are_found(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    fault = env.server.fail(
        NotFound(404, "NotFound", ""), verb="list", kind=kinds.PLACEMENT_POLICIES, times=None
    )
    env.add_policy(selector=WEB)
    async with env.running():
        assert not env.policies
        fault.clear()
        await asyncio.sleep(SETTLED)
        assert env.policies


async def test_listeners_hear_of_each_change_of_what_is_in_force(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    async with env.running():
        heard = list[str]()
        env.policies.subscribe(lambda: heard.append(str(env.policies.of(POD))))
        env.add_policy(selector=WEB)
        await asyncio.sleep(SETTLED)
        assert [text.partition(",")[0] for text in heard] == ["Policy(name='placementpolicy/web'"]
        assert env.accepted()[0] == "True", "a status was written, which is no news"

        def fill(policy: Object) -> None:
            policy["spec"]["mode"] = "Fill"

        env.server.change(kinds.PLACEMENT_POLICIES, "web", "default", fill)
        await asyncio.sleep(SETTLED)
        env.server.remove(kinds.PLACEMENT_POLICIES, "web", "default")
        await asyncio.sleep(SETTLED)
        assert len(heard) == 3
        assert "Mode.FILL" in heard[1]
        assert heard[2] == "None"


async def test_a_policy_is_in_force_while_its_clusters_exist(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB, targets=[{"cluster": "a"}, {"cluster": "b"}])
    async with env.running():
        assert not env.policies
        status, reason, message = env.accepted()
        assert (status, reason) == ("False", "UnknownCluster")
        assert "spec.targets[1].cluster: there is no Target or ClusterTarget b" in message
        assert "there are: a, admiralty-a" in message
        env.add_target("b")
        await asyncio.sleep(SETTLED)
        assert env.policies.of(POD)
        assert env.accepted()[0] == "True"
        env.server.remove(kinds.CLUSTER_TARGETS, "b")
        await asyncio.sleep(SETTLED)
        assert env.policies.of(POD) is None


async def test_a_policy_cannot_name_the_target_of_another_namespace(clock: Clock) -> None:
    env = PlacementEnvironment(clock)
    env.add_target("a", "other")
    env.add_policy(selector=WEB, clusters={"names": ["a"]})
    env.add_policy("all", "", selector=WEB, clusters={"names": ["a"]})
    async with env.running():
        assert "(there are: none)" in env.accepted()[2]
        found = env.policies.of(POD)
        assert found is not None
        assert found.name == "clusterplacementpolicy/all"


async def test_an_invalid_policy_hurts_no_other(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy("bad", selector=WEB, priority=9, targets=[{"weight": 1}])
    env.add_policy(selector=WEB)
    async with env.running():
        found = env.policies.of(POD)
        assert found is not None
        assert found.name == "placementpolicy/web"
        assert env.accepted("bad") == (
            "False",
            "Invalid",
            "spec.targets[0]: give exactly one of cluster and selector",
        )


async def test_a_drain_ends_at_its_moment_and_who_schedules_hears_of_it(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b")
    at, later = (clock.now() + timedelta(seconds=seconds) for seconds in (100, 5000))
    drains = [
        {"cluster": "a", "until": objects.timestamp(at)},
        {"cluster": "b", "until": objects.timestamp(later), "maxReplicas": 3},
    ]
    env.add_policy(selector=WEB, drain=drains)
    async with env.running():
        heard = list[list[str]]()

        def changed() -> None:
            policy = env.policies.of(POD)
            heard.append([drain.cluster for drain in policy.drains] if policy else [])

        env.policies.subscribe(changed)
        assert env.accepted()[0] == "True"
        await asyncio.sleep(at.timestamp() - clock.now().timestamp() - 1)
        assert heard == []
        await asyncio.sleep(1.5)
        assert heard == [["b"]]
        await asyncio.sleep(5000)
        assert heard == [["b"], []]


async def test_a_drain_needs_its_cluster(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB, drain=[{"cluster": "x"}])
    async with env.running():
        _, reason, message = env.accepted()
        assert reason == "UnknownCluster"
        assert message.startswith("spec.drain[0].cluster: there is no Target or ClusterTarget x")
