"""Sets make a Target of each profile that they select, and of none that is somebody else's."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.unit.targetsets.sets_environment import ALL, CRD, TargetSetsEnvironment
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime


async def test_each_selected_profile_becomes_a_target(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east", "west")
    env.add_profile("lab", env="test")
    env.add_set(spec={"profiles": {"selector": {"matchLabels": {"env": "test"}}}})
    env.add_set("both", {"profiles": {"names": ["east", "west"]}})
    async with env.leading():
        assert env.targets() == ["east", "lab", "west"]
        target = env.target("lab")
        assert target["spec"] == {"clusterProfile": {"namespace": "fleet", "name": "lab"}}
        assert objects.labels(target) == {keys.TARGET_SET: "all"}
        assert objects.controller_reference(target) == {
            "apiVersion": "vnode.dev/v1alpha1",
            "kind": "ClusterTargetSet",
            "name": "all",
            "uid": objects.uid(env.set()),
            "controller": True,
        }
        env.add_profile("later", env="test")
        await asyncio.sleep(2)
        assert "later" in env.targets()
        await asyncio.sleep(2)
        assert env.reasons() == {"fleet/lab": "Pending", "fleet/later": "Pending"}


async def test_the_status_counts_profiles_and_ready_targets(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east", "west")
    env.add_set()
    async with env.leading():
        await asyncio.sleep(3)
        status = objects.status(env.set())
        assert (status["found"], status["ready"]) == (2, 0)
        assert env.state() == ("False", "TargetsNotReady")
        env.make_ready("east", "west")
        await asyncio.sleep(3)
        assert objects.status(env.set())["ready"] == 2
        assert env.state() == ("True", "TargetsReady")
        assert env.state("RemovalHeld") == ("False", "NothingHeld")
        writes = env.server.count("patch", kinds.CLUSTER_TARGET_SETS)
        await asyncio.sleep(1000)
        assert env.server.count("patch", kinds.CLUSTER_TARGET_SETS) == writes


async def test_a_target_of_another_namespace_that_names_the_set_as_owner_is_not_its_own(
    clock: Clock,
) -> None:
    """Else the set would take it for the one that it was to make."""
    env = TargetSetsEnvironment(clock)
    env.add_profile("east", "team")
    env.add_set("mine", ALL, namespace="team")
    owner = {"kind": "TargetSet", "name": "mine", "uid": objects.uid(env.set("mine", "team"))}
    metadata = {
        "name": "east",
        "namespace": "hostile",
        "labels": {keys.TARGET_SET: "mine"},
        "ownerReferences": [{**owner, "apiVersion": "vnode.dev/v1alpha1", "controller": True}],
    }
    spec = {"clusterProfile": {"name": "east"}}
    env.server.add(kinds.TARGETS, {"metadata": metadata, "spec": spec})
    async with env.leading():
        await asyncio.sleep(2)
        found = env.server.all(kinds.TARGETS)
        assert {objects.key(target) for target in found} == {"hostile/east", "team/east"}
        env.server.remove(kinds.CLUSTER_PROFILES, "east", "team")
        await asyncio.sleep(1000)
        assert env.server.find(kinds.TARGETS, "east", "hostile")


async def test_a_target_made_by_hand_wins(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east")
    env.server.add(kinds.CLUSTER_TARGETS, {"metadata": {"name": "east"}, "spec": {"self": True}})
    env.add_set()
    async with env.leading():
        await asyncio.sleep(3)
        assert env.target("east")["spec"] == {"self": True}
        assert env.state() == ("False", "NameTaken")
        assert "clustertarget/east was made by hand" in env.message()
        env.remove_profile("east")
        await asyncio.sleep(1000)
        assert env.targets() == ["east"]
        env.add_profile("east")
        await asyncio.sleep(2)
        env.server.remove(kinds.CLUSTER_TARGETS, "east")
        await asyncio.sleep(3)
        assert "clusterProfile" in env.target("east")["spec"]


async def test_of_two_profiles_of_one_name_the_older_has_the_target(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock)
    env.add_profile("east", "team", created="2020-01-02T00:00:00Z")
    env.add_profile("east", "fleet", created="2020-01-03T00:00:00Z")
    env.add_set()
    async with env.leading():
        await asyncio.sleep(3)
        assert env.target("east")["spec"]["clusterProfile"]["namespace"] == "team"
        assert env.reasons()["fleet/east"] == "NameTaken"
        assert "rename one of the profiles" in env.message()


async def test_of_two_sets_the_first_keeps_its_target(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east")
    env.add_set()
    async with env.leading():
        env.add_set("also")
        await asyncio.sleep(3)
        assert objects.labels(env.target("east"))[keys.TARGET_SET] == "all"
        assert env.reasons("also") == {"fleet/east": "NameTaken"}


async def test_a_name_that_no_target_can_have_is_reported(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "e" * 64)
    env.add_set()
    async with env.leading():
        await asyncio.sleep(3)
        assert env.targets() == []
        assert env.state() == ("False", "NameInvalid")


async def test_a_target_that_is_refused_is_reported_and_tried_again(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east", "west")
    denied = Denied(403, "Forbidden", "not today")
    env.server.fail(
        denied, verb="create", kind=kinds.CLUSTER_TARGETS, when=lambda r: r.name == "east"
    )
    env.server.fail(denied, verb="create", kind=kinds.CLUSTER_TARGETS)
    env.add_set()
    async with env.leading():
        await asyncio.sleep(3)
        assert len(env.targets()) == 1
        assert env.state() == ("False", "NotCreated")
        await asyncio.sleep(60)
        env.add_profile("third")
        await asyncio.sleep(3)
        assert len(env.targets()) == 3


async def test_a_set_in_a_namespace_makes_targets_of_it(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east")
    env.add_profile("own", "team")
    env.add_set("mine", namespace="team")
    env.add_set("other", namespace="elsewhere")
    async with env.leading():
        await asyncio.sleep(3)
        (target,) = env.server.all(kinds.TARGETS)
        assert objects.key(target) == "team/own"
        assert target["spec"] == {"clusterProfile": {"name": "own"}}
        assert env.state("Ready", "other", "elsewhere") == ("False", "NamespaceNotAllowed")


async def test_profiles_that_are_not_believed_are_not_there(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east")
    env.add_profile("own", "team")
    env.add_set()
    async with env.leading("team"):
        assert env.targets() == ["own"]


async def test_a_set_that_is_wrong_makes_and_removes_nothing(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east")
    env.add_set()
    async with env.leading():
        env.change_set(profiles={"properties": [{"name": "a", "operator": "Gt", "values": []}]})
        await asyncio.sleep(1000)
        assert env.targets() == ["east"]
        assert env.state() == ("False", "InvalidSpec")


async def test_an_inventory_may_come_later(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, served=False)
    env.add_set()
    async with env.leading():
        assert env.state() == ("False", "InventoryNotServed")
        assert env.server.count(kind=kinds.CLUSTER_PROFILES) == 0
        env.server.add(kinds.CRDS, CRD)
        await asyncio.sleep(3)
        assert env.state() == ("False", "NoProfiles")
        env.add_profile("east")
        await asyncio.sleep(2)
        assert env.targets() == ["east"]


async def test_without_sets_no_profiles_are_watched(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east")
    async with env.leading():
        await asyncio.sleep(100)
        assert env.server.count(kind=kinds.CLUSTER_PROFILES) == 0
        assert env.server.count(kind=kinds.CRDS) == 0


async def test_a_target_remembers_what_its_profile_says(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "east")
    env.add_set()
    async with env.leading():
        await asyncio.sleep(2)
        kept = json.loads(objects.status(env.target("east"))["lastClusterProfile"])
        assert kept["metadata"]["name"] == "east"
        assert kept["status"]["accessProviders"][0]["cluster"] == {"server": "https://east"}
        before = env.server.count("patch", kinds.CLUSTER_TARGETS)
        for number in range(100):
            condition = {"type": "ControlPlaneHealthy", "status": str(number % 2 == 0)}
            env.server.change(
                *(kinds.CLUSTER_PROFILES, "east", "fleet"),
                lambda obj, state=condition: obj["status"].update(conditions=[state]),
            )
            await asyncio.sleep(0.5)

        assert env.server.count("patch", kinds.CLUSTER_TARGETS) == before


def reconciled() -> float:
    """Count reconciliations of sets, in all tests together."""
    found = [sample for family in metrics.RECONCILES.collect() for sample in family.samples]
    return sum(
        sample.value
        for sample in found
        if sample.labels["controller"] == "target-sets" and sample.name.endswith("_total")
    )


async def test_a_profile_has_only_the_sets_reconciled_that_may_select_it(clock: Clock) -> None:
    """Whoever changes the profiles of a namespace costs the sets of others nothing."""
    env = TargetSetsEnvironment(clock)
    for number in range(30):
        env.add_set(f"theirs-{number}", ALL, namespace="team")

    env.add_set("own", ALL, namespace="hostile")
    async with env.leading():
        await asyncio.sleep(10)
        before = reconciled()
        for number in range(5):
            env.add_profile(f"p{number}", "hostile")
            await asyncio.sleep(5)

        assert reconciled() - before < 30
