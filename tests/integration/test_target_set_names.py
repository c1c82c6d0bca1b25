"""Two ClusterProfiles of one name in two namespaces: only one of them has the ClusterTarget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest

from tests import inventory, kit
from tests.integration.custom_objects import create
from tests.integration.kept_sets import keeping_sets
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


@pytest.fixture
async def second(client: Client, namespace: str) -> AsyncIterator[str]:
    """Yield another namespace of the inventory; there are no sets but those of the test."""
    await remove_sets(client)
    yield await kit.new_namespace(client, f"{namespace}-second")
    await remove_sets(client)


async def remove_sets(client: Client) -> None:
    """Delete all ClusterTargetSets, and wait until none of their ClusterTargets is left."""
    for left in await client.list(kinds.CLUSTER_TARGET_SETS):
        await client.delete(kinds.CLUSTER_TARGET_SETS, objects.name(left))

    await kit.until_gone(client, kinds.CLUSTER_TARGETS, label_selector=keys.TARGET_SET)


async def until_made_of(client: Client, made_by: str, profiles: Mapping[str, str]) -> None:
    """Wait until a set has made ClusterTargets of these names, of profiles in these namespaces."""

    def namespace_of(target: Object) -> str:
        return str(objects.spec(target)["clusterProfile"]["namespace"])

    await kit.until(
        *(client, kinds.CLUSTER_TARGETS),
        lambda all_: {name: namespace_of(target) for name, target in all_.items()} == profiles,
        label_selector=f"{keys.TARGET_SET}={made_by}",
    )


async def until_taken(client: Client, name: str, *, by: str, of: str) -> None:
    """Wait until a set says that the Target of profile `by` keeps profile `of` from having one."""

    def is_taken(obj: Object) -> bool:
        ready = objects.condition(obj, "Ready") or {}
        listed = objects.status(obj).get("targets") or []
        message = (
            f"profile {of} has no Target: Target east already belongs to ClusterProfile {by}: "
            "rename one of the profiles"
        )
        return (
            (ready.get("status"), ready.get("reason")) == ("False", "NameTaken")
            and ready["message"] == message
            and {entry["profile"]: entry["reason"] for entry in listed}
            == {by: "Pending", of: "NameTaken"}
        )

    await kit.until_one(client, kinds.CLUSTER_TARGET_SETS, name, "", is_taken)


async def test_of_two_profiles_of_one_name_the_set_refuses_the_later(
    fleet: Fleet, client: Client, namespace: str, second: str
) -> None:
    """The other takes over the name when the first goes, and one that is renamed has a Target."""
    ours, theirs = f"{namespace}/east", f"{second}/east"
    async with keeping_sets(fleet, client, namespace, second):
        await inventory.add_profile(client, namespace, "east", {})
        spec = {"profiles": {"selector": {}}, "removal": {"after": "1s"}}
        await create(client, kinds.CLUSTER_TARGET_SETS, namespace, spec=spec)
        await until_made_of(client, namespace, {"east": namespace})

        await inventory.add_profile(client, second, "east", {})
        await until_taken(client, namespace, by=ours, of=theirs)
        await until_made_of(client, namespace, {"east": namespace})

        await client.delete(kinds.CLUSTER_PROFILES, "east", namespace)
        await until_made_of(client, namespace, {"east": second})

        await inventory.add_profile(client, namespace, "east", {})
        await until_taken(client, namespace, by=theirs, of=ours)
        await client.delete(kinds.CLUSTER_PROFILES, "east", namespace)
        await inventory.add_profile(client, namespace, "west", {})
        await until_made_of(client, namespace, {"east": second, "west": namespace})
