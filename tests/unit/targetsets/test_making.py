"""Sets make a Target of each profile that they select, and of none that is somebody else's."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.unit.targetsets.sets_world import CRD, SetsWorld
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied

pytestmark = pytest.mark.looptime


async def test_each_selected_profile_becomes_a_target(clock: Clock) -> None:
    world = SetsWorld(clock, "east", "west")
    world.add_profile("lab", env="test")
    world.add_set(spec={"profiles": {"selector": {"matchLabels": {"env": "test"}}}})
    world.add_set("both", {"profiles": {"names": ["east", "west"]}})
    async with world.leading():
        assert world.targets() == ["east", "lab", "west"]
        target = world.target("lab")
        assert target["spec"] == {"clusterProfile": {"namespace": "fleet", "name": "lab"}}
        assert objects.labels(target) == {keys.TARGET_SET: "all"}
        assert objects.controller_reference(target) == {
            "apiVersion": "vnode.dev/v1alpha1",
            "kind": "ClusterTargetSet",
            "name": "all",
            "uid": objects.uid(world.set()),
            "controller": True,
        }
        world.add_profile("later", env="test")
        await asyncio.sleep(2)
        assert "later" in world.targets()
        await asyncio.sleep(2)
        assert world.reasons() == {"fleet/lab": "Pending", "fleet/later": "Pending"}


async def test_the_status_counts_profiles_and_ready_targets(clock: Clock) -> None:
    world = SetsWorld(clock, "east", "west")
    world.add_set()
    async with world.leading():
        await asyncio.sleep(3)
        status = objects.status(world.set())
        assert (status["found"], status["ready"]) == (2, 0)
        assert world.state() == ("False", "TargetsNotReady")
        world.make_ready("east", "west")
        await asyncio.sleep(3)
        assert objects.status(world.set())["ready"] == 2
        assert world.state() == ("True", "TargetsReady")
        assert world.state("RemovalHeld") == ("False", "NothingHeld")
        writes = world.server.count("patch", kinds.CLUSTER_TARGET_SETS)
        await asyncio.sleep(1000)
        assert world.server.count("patch", kinds.CLUSTER_TARGET_SETS) == writes


async def test_a_target_made_by_hand_wins(clock: Clock) -> None:
    world = SetsWorld(clock, "east")
    world.server.add(kinds.CLUSTER_TARGETS, {"metadata": {"name": "east"}, "spec": {"self": True}})
    world.add_set()
    async with world.leading():
        await asyncio.sleep(3)
        assert world.target("east")["spec"] == {"self": True}
        assert world.state() == ("False", "NameTaken")
        assert "clustertarget/east was made by hand" in world.message()
        world.remove_profile("east")
        await asyncio.sleep(1000)
        assert world.targets() == ["east"]
        world.add_profile("east")
        await asyncio.sleep(2)
        world.server.remove(kinds.CLUSTER_TARGETS, "east")
        await asyncio.sleep(3)
        assert "clusterProfile" in world.target("east")["spec"]


async def test_of_two_profiles_of_one_name_the_older_has_the_target(clock: Clock) -> None:
    world = SetsWorld(clock)
    world.add_profile("east", "team", created="2020-01-02T00:00:00Z")
    world.add_profile("east", "fleet", created="2020-01-03T00:00:00Z")
    world.add_set()
    async with world.leading():
        await asyncio.sleep(3)
        assert world.target("east")["spec"]["clusterProfile"]["namespace"] == "team"
        assert world.reasons()["fleet/east"] == "NameTaken"
        assert "rename one of the profiles" in world.message()


async def test_of_two_sets_the_first_keeps_its_target(clock: Clock) -> None:
    world = SetsWorld(clock, "east")
    world.add_set()
    async with world.leading():
        world.add_set("also")
        await asyncio.sleep(3)
        assert objects.labels(world.target("east"))[keys.TARGET_SET] == "all"
        assert world.reasons("also") == {"fleet/east": "NameTaken"}


async def test_a_name_that_no_target_can_have_is_reported(clock: Clock) -> None:
    world = SetsWorld(clock, "e" * 64)
    world.add_set()
    async with world.leading():
        await asyncio.sleep(3)
        assert world.targets() == []
        assert world.state() == ("False", "NameInvalid")


async def test_a_target_that_is_refused_is_reported_and_tried_again(clock: Clock) -> None:
    world = SetsWorld(clock, "east", "west")
    denied = Denied(403, "Forbidden", "not today")
    world.server.fail(
        denied, verb="create", kind=kinds.CLUSTER_TARGETS, when=lambda r: r.name == "east"
    )
    world.server.fail(denied, verb="create", kind=kinds.CLUSTER_TARGETS)
    world.add_set()
    async with world.leading():
        await asyncio.sleep(3)
        assert len(world.targets()) == 1
        assert world.state() == ("False", "NotCreated")
        await asyncio.sleep(60)
        world.add_profile("third")
        await asyncio.sleep(3)
        assert len(world.targets()) == 3


async def test_a_set_in_a_namespace_makes_targets_of_it(clock: Clock) -> None:
    world = SetsWorld(clock, "east")
    world.add_profile("own", "team")
    world.add_set("mine", namespace="team")
    world.add_set("other", namespace="elsewhere")
    async with world.leading():
        await asyncio.sleep(3)
        (target,) = world.server.all(kinds.TARGETS)
        assert objects.key(target) == "team/own"
        assert target["spec"] == {"clusterProfile": {"name": "own"}}
        assert world.state("Ready", "other", "elsewhere") == ("False", "NamespaceNotAllowed")


async def test_profiles_that_are_not_believed_are_not_there(clock: Clock) -> None:
    world = SetsWorld(clock, "east")
    world.add_profile("own", "team")
    world.add_set()
    async with world.leading("team"):
        assert world.targets() == ["own"]


async def test_a_set_that_is_wrong_makes_and_removes_nothing(clock: Clock) -> None:
    world = SetsWorld(clock, "east")
    world.add_set()
    async with world.leading():
        world.change_set(profiles={"properties": [{"name": "a", "operator": "Gt", "values": []}]})
        await asyncio.sleep(1000)
        assert world.targets() == ["east"]
        assert world.state() == ("False", "InvalidSpec")


async def test_an_inventory_may_come_later(clock: Clock) -> None:
    world = SetsWorld(clock, served=False)
    world.add_set()
    async with world.leading():
        assert world.state() == ("False", "InventoryNotServed")
        assert world.server.count(kind=kinds.CLUSTER_PROFILES) == 0
        world.server.add(kinds.CRDS, CRD)
        await asyncio.sleep(3)
        assert world.state() == ("False", "NoProfiles")
        world.add_profile("east")
        await asyncio.sleep(2)
        assert world.targets() == ["east"]


async def test_without_sets_no_profiles_are_watched(clock: Clock) -> None:
    world = SetsWorld(clock, "east")
    async with world.leading():
        await asyncio.sleep(100)
        assert world.server.count(kind=kinds.CLUSTER_PROFILES) == 0
        assert world.server.count(kind=kinds.CRDS) == 0


async def test_a_target_remembers_what_its_profile_says(clock: Clock) -> None:
    world = SetsWorld(clock, "east")
    world.add_set()
    async with world.leading():
        await asyncio.sleep(2)
        kept = json.loads(objects.status(world.target("east"))["lastClusterProfile"])
        assert kept["metadata"]["name"] == "east"
        assert kept["status"]["accessProviders"][0]["cluster"] == {"server": "https://east"}
        before = world.server.count("patch", kinds.CLUSTER_TARGETS)
        for number in range(100):
            condition = {"type": "ControlPlaneHealthy", "status": str(number % 2 == 0)}
            world.server.change(
                *(kinds.CLUSTER_PROFILES, "east", "fleet"),
                lambda obj, state=condition: obj["status"].update(conditions=[state]),
            )
            await asyncio.sleep(0.5)

        assert world.server.count("patch", kinds.CLUSTER_TARGETS) == before
