"""Which policies are in force, and who learns of it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.computing import BusyClock
from tests.unit.placement.environment import SETTLED, PlacementEnvironment
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Denied, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.placement.policies.judging import PolicyVerdict

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


async def test_pods_of_a_group_are_kept_together_unless_a_policy_is_for_them(clock: Clock) -> None:
    ray: Object = {"metadata": {"namespace": "default", "labels": {"ray.io/cluster": "tuning"}}}
    env = PlacementEnvironment(clock, "a")
    env.kept_together = ("ray.io/cluster",)
    async with env.running():
        assert env.policies
        assert env.policies.of(POD) is None
        found = env.policies.of(ray)
        assert found is not None
        assert found.is_together
        env.add_policy("ray", "", selector={}, mode="Any")
        await asyncio.sleep(SETTLED)
        found = env.policies.of(ray)
        assert found is not None
        assert found.name == "clusterplacementpolicy/ray"


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
        env.policies.subscribe(lambda _: heard.append(str(env.policies.of(POD))))
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


async def test_a_policy_is_refused_that_names_a_cluster_which_never_existed(clock: Clock) -> None:
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


FILL: dict[str, Any] = {
    "selector": WEB,
    "mode": "Fill",
    "targets": [{"cluster": "a", "maxReplicas": 4}, {"cluster": "b"}],
    "drain": [{"cluster": "b", "maxReplicas": 3}],
}


async def test_a_policy_stays_in_force_without_a_cluster_that_has_gone(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b", "c")
    env.add_policy(**FILL)
    async with env.running():
        before = env.policies.of(POD)
        env.remove_target("b")
        await asyncio.sleep(2)
        assert env.policies.of(POD) == before
        status, reason, message = env.accepted(type_="ClustersFound")
        assert (status, reason) == ("False", "UnknownCluster")
        assert "b (spec.targets[1].cluster), b (spec.drain[0].cluster)" in message
        assert env.accepted() == ("True", "Accepted", "the policy is in force")

    # Another agent, which was not there before.
    async with env.running():
        assert env.policies.of(POD) == before
        assert env.accepted(type_="ClustersFound")[0] == "False"
        env.add_target("b")
        await asyncio.sleep(2)
        types = [condition["type"] for condition in env.status()["conditions"]]
        assert types == ["Accepted", "Ready"]


async def test_a_change_may_keep_a_cluster_that_has_gone_and_name_no_new_one(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b")
    env.add_policy(**FILL)

    def change(cluster: str, maximum: int) -> None:
        def changed(policy: Object) -> None:
            policy["metadata"]["generation"] += 1
            policy["spec"]["targets"][0] = {"cluster": cluster, "maxReplicas": maximum}

        env.server.change(kinds.PLACEMENT_POLICIES, "web", "default", changed)

    async with env.running():
        env.remove_target("b")
        await asyncio.sleep(SETTLED)
        change("a", 5)
        await asyncio.sleep(SETTLED)
        found = env.policies.of(POD)
        assert found is not None
        assert found.targets[0].maximum == 5
        change("moon", 5)
        await asyncio.sleep(SETTLED)
        assert env.policies.of(POD) is None
        assert "there is no Target or ClusterTarget moon" in env.accepted()[2]

    async with env.running():
        assert env.policies.of(POD) is None


async def test_a_policy_that_is_made_anew_is_judged_anew(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a", "b")
    env.add_policy(**FILL)
    async with env.running():
        env.remove_target("b")
        env.server.remove(kinds.PLACEMENT_POLICIES, "web", "default")
        env.add_policy(**FILL)
        await asyncio.sleep(SETTLED)
        assert env.policies.of(POD) is None
        assert env.accepted()[1] == "UnknownCluster"


async def test_nothing_is_said_of_a_policy_before_it_is_known_which_clusters_exist(
    clock: Clock,
) -> None:
    """What is said once is believed later."""
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB, targets=[{"cluster": "moon"}])
    env.server.fail(
        ApiError(503, "ServiceUnavailable", "later"), kind=kinds.CLUSTER_TARGETS, times=4
    )
    async with env.running():
        written = env.server.received("patch", kinds.PLACEMENT_POLICIES, "status")
        assert [each.body["status"]["conditions"][0]["status"] for each in written] == ["False"]


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


async def test_a_target_of_a_namespace_has_no_policies_of_others_judged(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(targets=[{"cluster": "a"}])
    async with env.running():
        before = env.policies.verdict("default/web")
        env.add_target("b", "hostile")
        await asyncio.sleep(SETTLED)
        assert env.policies.verdict("default/web") is before
        env.add_target("b", "default")
        await asyncio.sleep(SETTLED)
        assert env.policies.verdict("default/web") is not before


async def test_whoever_waits_for_policies_waits_for_no_target_that_changes_meanwhile(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = PlacementEnvironment(BusyClock(), "a")
    env.add_policy(targets=[{"cluster": "a"}])
    async with env.running():
        judge, change = env.policies._judge, env.policies._judge_all

        def judge_while_one_changes(obj: Object) -> PolicyVerdict:
            change("default")
            return judge(obj)

        monkeypatch.setattr(env.policies, "_judge", judge_while_one_changes)
        change("default")
        async with asyncio.timeout(5):
            await env.policies.wait_known()


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

        def changed(_namespace: str) -> None:
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
