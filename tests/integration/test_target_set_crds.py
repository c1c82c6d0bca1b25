"""What a real API server accepts as a TargetSet, and what it refuses with the cure."""

from __future__ import annotations

import pytest

from tests import inventory, kit
from tests.integration.custom_objects import create
from tests.integration.kept_sets import keeping_sets
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.errors import Invalid
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.targetsets import spec as target_sets

BOTH = [kinds.TARGET_SETS, kinds.CLUSTER_TARGET_SETS]
ALL: Object = {"selector": {}}


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.plural)
async def test_every_field_is_kept_and_means_what_the_agent_reads(
    client: Client, namespace: str, kind: Kind
) -> None:
    expression = {"key": "tier", "operator": "NotIn", "values": ["test"]}
    profiles: Object = {
        "selector": {"matchLabels": {"env": "prod"}, "matchExpressions": [expression]},
        "managers": ["ocm"],
        "names": ["a", "b"],
        "properties": [
            {"name": "memory", "operator": "Gt", "values": ["400Gi"]},
            {"name": "gpus", "operator": "In", "values": [4, 8]},
            {"name": "price", "operator": "Exists"},
        ],
        "conditions": [{"type": "ControlPlaneHealthy", "status": "True"}],
    }
    if not kind.namespaced:
        profiles["namespace"] = "fleet"

    spec = {
        "profiles": profiles,
        "removal": {"policy": "Cordon", "after": "1h2m3s", "maxPerMinute": 3},
    }
    created = await create(client, kind, namespace, spec=spec)
    assert created["spec"] == spec
    decoded = target_sets.decode(created)
    assert (decoded.after, decoded.per_minute) == (3723.0, 3)
    assert decoded.selection.namespace == (namespace if kind.namespaced else "fleet")


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.plural)
async def test_the_defaults_are_those_of_the_agent(
    client: Client, namespace: str, kind: Kind
) -> None:
    created = await create(client, kind, namespace, spec={"profiles": ALL})
    assert created["spec"]["removal"] == {"policy": "Drain", "after": "5m", "maxPerMinute": 10}
    bare = {**created, "spec": {"profiles": ALL}}
    assert target_sets.decode(created) == target_sets.decode(bare)


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.plural)
@pytest.mark.parametrize(
    ("spec", "cure"),
    [
        ({}, "spec.profiles: Required value"),
        ({"profiles": {}}, 'write "selector: {}" for all profiles'),
        (
            {"profiles": {"properties": [{"name": "a", "operator": "Gt", "values": ["1", "2"]}]}},
            "Gt, Ge, Lt and Le need one value",
        ),
        ({"profiles": {"properties": [{"name": "a", "operator": "In"}]}}, "all others need some"),
        (
            {"profiles": {"properties": [{"name": "a", "operator": "Exists", "values": ["1"]}]}},
            "Exists and DoesNotExist take no values",
        ),
        ({"profiles": {"properties": [{"name": "a", "operator": "Is"}]}}, "supported values"),
        ({"profiles": {"managers": []}}, "at least 1"),
        ({"profiles": ALL, "removal": {"policy": "Keep"}}, '"Drain", "Cordon", "Orphan"'),
        ({"profiles": ALL, "removal": {"after": "soon"}}, "should match"),
        ({"profiles": ALL, "removal": {"after": ""}}, "at least 1 char"),
        ({"profiles": ALL, "removal": {"maxPerMinute": 0}}, "greater than or equal to 1"),
    ],
)
async def test_what_cannot_work_is_refused_with_the_cure(
    client: Client, namespace: str, kind: Kind, spec: Object, cure: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        await create(client, kind, namespace, spec=spec)

    assert cure in refusal.value.message


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.plural)
async def test_a_name_that_is_no_label_value_is_refused(
    client: Client, namespace: str, kind: Kind
) -> None:
    with pytest.raises(Invalid, match="at most 63 characters"):
        await create(client, kind, namespace, "n" * 64, spec={"profiles": ALL})


async def until_targets(client: Client, namespace: str, *names: str) -> None:
    """Wait until a set has made these Targets, which remember their profiles, and no others."""
    await kit.until(
        *(client, kinds.TARGETS),
        lambda found: (
            {objects.name(each) for each in found.values()} == set(names)
            and all("lastClusterProfile" in objects.status(each) for each in found.values())
        ),
        namespace=namespace,
    )


async def set_ready(client: Client, namespace: str, name: str) -> None:
    """Have a Target look connected: until then it holds up the removal of others."""
    ready = {"type": "Ready", "status": "True", "reason": "Connected", "message": ""}
    condition = {**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [condition]}
    await client.patch(*(kinds.TARGETS, name, {"status": status}, namespace), subresource="status")


async def confirm(client: Client, namespace: str) -> None:
    """Confirm the removals of a set, and wait until that is used up."""
    body = {"metadata": {"annotations": {keys.CONFIRM_REMOVAL: "1"}}}
    await client.patch(kinds.TARGET_SETS, namespace, body, namespace)
    await kit.until_one(
        *(client, kinds.TARGET_SETS, namespace, namespace),
        lambda obj: keys.CONFIRM_REMOVAL not in objects.annotations(obj),
    )


async def test_the_agent_keeps_a_set_with_the_role_that_is_bound_to_it(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    """Without that role it makes nothing, and goes on."""
    async with keeping_sets(fleet, client, namespace):
        for name in ("east", "west"):
            await inventory.add_profile(client, namespace, name, {})

        spec = {"profiles": ALL, "removal": {"after": "1s"}}
        made = await create(client, kinds.TARGET_SETS, namespace, spec=spec)
        await until_targets(client, namespace, "east", "west")
        await set_ready(client, namespace, "west")
        await client.delete(kinds.CLUSTER_PROFILES, "east", namespace)
        await until_targets(client, namespace, "west")
        await kit.until_one(
            *(client, kinds.TARGET_SETS, namespace, namespace),
            lambda obj: objects.status(obj).get("found") == 1,
        )
        await confirm(client, namespace)
        assert objects.metadata(made)["generation"] == 1


async def test_nothing_is_removed_when_most_profiles_or_their_kind_go(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    lost = ("north", "east", "south")

    async def until_held(*, because: str) -> None:
        await kit.until_one(
            *(client, kinds.TARGET_SETS, namespace, namespace),
            lambda obj: (objects.condition(obj, "RemovalHeld") or {}).get("reason") == because,
        )
        await until_targets(client, namespace, *lost, "west")

    async def add(*names: str) -> None:
        for name in names:
            await inventory.add_profile(client, namespace, name, {})

    async def lose() -> None:
        for name in lost:
            await client.delete(kinds.CLUSTER_PROFILES, name, namespace)

    async with keeping_sets(fleet, client, namespace):
        await add(*lost, "west")
        spec = {"profiles": ALL, "removal": {"after": "1s"}}
        await create(client, kinds.TARGET_SETS, namespace, spec=spec)
        await until_targets(client, namespace, *lost, "west")
        await set_ready(client, namespace, "west")
        await lose()
        await until_held(because="MostProfilesGone")
        await add(*lost)
        await until_held(because="NothingHeld")
        await inventory.uninstall(client)
        await until_held(because="InventoryNotServed")
        await inventory.installed(client)
        await add(*lost, "west")
        await until_held(because="NothingHeld")
        await lose()
        await until_held(because="MostProfilesGone")
        await confirm(client, namespace)
        await until_targets(client, namespace, "west")
