"""What a policy decides is published, seldom and wholly, and taken back when it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import decisions
from tests.decisions import SIG
from tests.unit.placement.environment import SETTLED, PlacementEnvironment, node_of
from tests.unit.scheduling import costs
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

WEB = {"matchLabels": {"app": "web"}}
MINUTE = 60.0


class Publishing(PlacementEnvironment):
    """Targets that name profiles of the namespace fleet, and a policy that publishes."""

    def __init__(self, clock: Clock, *names: str, served: bool = True, **publish: Any) -> None:
        super().__init__(clock)
        for name in names:
            self.add_target(name, clusterProfile={"namespace": "fleet", "name": name})

        self.add_policy(selector=WEB, mode="Any", publish=publish)
        if served:
            self.server.add(kinds.CRDS, decisions.established(SIG))

    def slices(self) -> dict[str, list[str]]:
        """Return the names of the decided profiles, by the name of the object."""
        return {
            objects.name(obj): [entry["clusterProfileRef"]["name"] for entry in obj["decisions"]]
            for obj in self.server.all(SIG)
        }

    def writes(self) -> int:
        return sum(self.server.count(verb, SIG) for verb in ("create", "patch", "delete"))

    def state(self) -> tuple[str, str, str]:
        return self.accepted(type_="Published")

    def change(self, **spec: Any) -> None:
        def changed(policy: Object) -> None:
            policy["spec"] = {"selector": WEB, "mode": "Any", **spec}

        self.server.change(kinds.PLACEMENT_POLICIES, "web", "default", changed)


async def settled(seconds: float = SETTLED) -> None:
    await asyncio.sleep(seconds)


async def test_two_hundred_and_fifty_clusters_are_three_slices(clock: Clock) -> None:
    names = [f"c{number:03}" for number in range(250)]
    env = Publishing(clock, *names)
    for name in names:
        env.add_pods("web", node_of(name), 1)

    async with env.running():
        found = env.slices()
        assert {name: len(each) for name, each in found.items()} == {
            "web-0": 100,
            "web-1": 100,
            "web-2": 50,
        }
        assert [name for each in found.values() for name in each] == names
        assert env.state()[:2] == ("True", "Published")


async def test_only_another_set_is_written_and_that_once_a_minute(clock: Clock) -> None:
    env = Publishing(clock, "a", "b", "c")
    env.add_pods("web", node_of("a"), 2)
    env.add_pods("web", node_of("b"), 1)
    async with env.running():
        assert env.slices() == {"web-0": ["a", "b"]}
        writes = env.writes()
        more = env.add_pods("web2", node_of("b"), 5)
        for pod in more:
            env.server.change(
                kinds.PODS,
                objects.name(pod),
                "default",
                lambda obj: obj["metadata"].update(labels={"app": "web"}),
            )

        await settled(2 * MINUTE)
        assert env.writes() == writes, "the order alone is no news"
        env.add_pods("web", node_of("c"), 1)
        await settled(10)
        assert env.slices() == {"web-0": ["b", "a", "c"]}
        writes = env.writes()
        [pod] = [p for p in env.server.all(kinds.PODS) if objects.node_name(p) == node_of("c")]
        env.server.remove(kinds.PODS, objects.name(pod), "default")
        await settled(MINUTE - 10)
        assert env.writes() == writes
        await settled(MINUTE)
        assert env.slices() == {"web-0": ["b", "a"]}


async def test_a_cluster_wide_policy_tells_of_cluster_targets_and_of_no_namespaces_own(
    clock: Clock,
) -> None:
    env = PlacementEnvironment(clock)
    env.server.add(kinds.NAMESPACES, {"metadata": {"name": "fleet"}})
    env.server.add(kinds.CRDS, decisions.established(SIG))
    env.add_target("a", clusterProfile={"namespace": "fleet", "name": "a"})
    for own, spec in (
        ("b", {"clusterProfile": {"name": "mine"}}),
        ("c", {"kubeconfigSecret": {"name": "c"}}),
    ):
        env.add_target(own, "default", **spec)
        env.add_pods("web", names.virtual_node("default", own), 3)

    env.add_pods("web", node_of("a"), 1)
    where = {"namespace": "fleet", "name": "all"}
    env.add_policy("all", "", selector=WEB, mode="Any", publish=where)
    async with env.running():
        [made] = env.server.all(SIG)
        assert made["decisions"] == [{"clusterProfileRef": {"namespace": "fleet", "name": "a"}}]
        policy = env.server.find(kinds.CLUSTER_PLACEMENT_POLICIES, "all")
        assert policy
        assert (objects.condition(policy, "Published") or {})["reason"] == "Published"


async def test_a_namespaces_own_policy_tells_of_its_own_targets_as_well(clock: Clock) -> None:
    env = Publishing(clock, "a")
    env.add_target("b", "default", clusterProfile={"name": "mine"})
    env.add_pods("web", names.virtual_node("default", "b"), 2)
    env.add_pods("web", node_of("a"), 1)
    async with env.running():
        assert env.slices() == {"web-0": ["mine", "a"]}


async def test_slices_that_are_left_over_are_deleted(clock: Clock) -> None:
    names = [f"c{number:03}" for number in range(120)]
    env = Publishing(clock, *names)
    pods = {name: env.add_pods("web", node_of(name), 1)[0] for name in names}
    async with env.running():
        assert list(env.slices()) == ["web-0", "web-1"]
        for name in names[2:]:
            env.server.remove(kinds.PODS, objects.name(pods[name]), "default")

        await settled(3 * MINUTE)
        assert env.slices() == {"web-0": ["c000", "c001"]}


async def test_a_new_leader_keeps_what_is_published(clock: Clock) -> None:
    env = Publishing(clock, "a", "b")
    env.add_pods("web", node_of("a"), 1)
    env.add_pods("web", node_of("b"), 1)
    async with env.running():
        writes = env.writes()

    async with env.running():
        await settled(3 * MINUTE)
        assert env.writes() == writes
        assert env.state()[0] == "True"


async def test_a_decision_that_somebody_has_broken_is_mended_without_a_loss(clock: Clock) -> None:
    names = [f"c{number:03}" for number in range(120)]
    env = Publishing(clock, *names)
    for name in names:
        env.add_pods("web", node_of(name), 1)

    async with env.running():
        assert len(env.slices()) == 2

    env.server.remove(SIG, "web-0", "default")
    pod = next(p for p in env.server.all(kinds.PODS) if objects.node_name(p) == node_of("c110"))
    env.server.remove(kinds.PODS, objects.name(pod), "default")
    async with env.running():
        assert {name: len(each) for name, each in env.slices().items()} == {
            "web-0": 100,
            "web-1": 20,
        }, "what others still see is kept for a minute"
        await settled(2 * MINUTE)
        assert sum(map(len, env.slices().values())) == 119


async def test_a_policy_that_begins_to_publish_is_not_published_half(clock: Clock) -> None:
    env = Publishing(clock, "a", "b")
    env.change()
    env.add_pods("web", node_of("a"), 1)
    env.add_pods("web", node_of("b"), 1)
    async with env.running():
        assert env.slices() == {}
        env.change(publish={})
        await settled()
        assert env.slices() == {"web-0": ["a", "b"]}
        assert env.writes() == 1


async def test_a_policy_that_publishes_no_more_takes_its_decision_back(clock: Clock) -> None:
    env = Publishing(clock, "a", name="gpu")
    env.add_pods("web", node_of("a"), 1)
    async with env.running():
        assert env.slices() == {"gpu-0": ["a"]}
        env.change(publish={"name": "cpu"})
        await settled(2 * MINUTE)
        assert env.slices() == {"cpu-0": ["a"]}
        env.change()
        await settled()
        assert env.slices() == {}
        assert [c["type"] for c in env.status()["conditions"]] == ["Accepted", "Ready"]


async def test_policies_that_have_published_are_not_remembered_once_they_are_gone(
    clock: Clock,
) -> None:
    env = Publishing(clock, "a")
    async with env.running():
        env.change()
        await settled(2 * MINUTE)
        env.server.remove(kinds.PLACEMENT_POLICIES, "web", "default")
        await settled()
        assert not costs.entries(env.publisher._offers, env.publisher._withdrawn)


async def test_it_is_published_once_the_kind_is_served(clock: Clock) -> None:
    env = Publishing(clock, "a", served=False)
    env.add_pods("web", node_of("a"), 1)
    async with env.running():
        assert env.state()[:2] == ("False", "NotServed")
        assert env.server.count("list", SIG) == 0
        env.server.add(kinds.CRDS, decisions.established(SIG))
        await settled()
        assert env.slices() == {"web-0": ["a"]}
        assert env.state()[0] == "True"


async def test_without_the_right_to_write_the_condition_names_the_role(clock: Clock) -> None:
    env = Publishing(clock, "a")
    env.add_pods("web", node_of("a"), 1)
    fault = env.server.fail(Denied(403, "Forbidden", "no"), kind=SIG, times=None)
    async with env.running():
        status, reason, message = env.state()
        assert (status, reason) == ("False", "Forbidden")
        assert "bind ClusterRole vnode-published-decisions" in message
        fault.clear()
        await settled(2 * MINUTE)
        assert env.state()[0] == "True"


async def test_the_decision_of_somebody_else_is_left_alone(clock: Clock) -> None:
    env = Publishing(clock, "a")
    env.add_pods("web", node_of("a"), 1)
    env.server.add(SIG, decisions.of_profiles("web", "fleet/x"))
    async with env.running():
        assert env.slices() == {"web-0": ["x"]}
        assert env.state()[:2] == ("False", "NameTaken")


async def test_clusters_without_a_profile_are_told(clock: Clock) -> None:
    env = Publishing(clock, "a")
    env.add_target("b")
    env.add_pods("web", node_of("a"), 1)
    env.add_pods("web", node_of("b"), 1)
    async with env.running():
        assert env.slices() == {"web-0": ["a"]}
        status, reason, message = env.state()
        assert (status, reason) == ("False", "ClustersLeftOut")
        assert "name no ClusterProfile: admiralty-b" in message


async def test_without_such_a_policy_nothing_is_asked(clock: Clock) -> None:
    env = PlacementEnvironment(clock, "a")
    env.add_policy(selector=WEB)
    env.server.add(kinds.CRDS, decisions.established(SIG))
    async with env.running():
        assert env.server.count("list", SIG) == 0
        assert env.server.count("list", kinds.CRDS) == 0
        assert keys.PUBLISHED_BY not in str(env.server.all(SIG))
