"""What a real API server accepts as a TargetSet, and what it refuses with the cure."""

from __future__ import annotations

import pytest

from tests import background, inventory, kit
from tests.fleets import SOURCE
from tests.integration.custom_objects import create
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import Invalid
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import kubeconfigs
from vnode.kube import account_tokens, endpoint
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.target_lister import TargetLister
from vnode.targetsets import spec as target_sets
from vnode.targetsets.controller import TargetSets

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


def made_at(obj: Object) -> str:
    return str(objects.metadata(obj)["creationTimestamp"])


async def test_the_agent_keeps_a_set_with_the_role_that_is_bound_to_it(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    """Without that role it makes nothing, and goes on."""
    clock, config = SystemClock(), InventoryConfig((namespace,))
    granted = await account_tokens.request(client, "vnode", "vnode", {"expirationSeconds": 600})
    reach, _name = kubeconfigs.read(fleet.kubeconfig(SOURCE))
    text = kubeconfigs.build(reach, granted.text, "vnode")
    binding = {
        "metadata": {"name": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "vnode-target-sets",
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": "vnode", "name": "vnode"}],
    }
    await inventory.uninstall(client)
    await inventory.installed(client)
    spec = {"profiles": ALL, "removal": {"after": "1s"}}
    try:
        await client.create(kinds.CLUSTER_ROLE_BINDINGS, binding)
        for name in ("east", "west"):
            await inventory.add_profile(client, namespace, name, {})

        made = await create(client, kinds.TARGET_SETS, namespace, spec=spec)
        async with Client(endpoint.from_kubeconfig(text), name="c1") as agent:
            lister = TargetLister(agent)
            nodes, proxies = Informer(agent, kinds.NODES), Informer(agent, kinds.PODS)
            sets = TargetSets(agent, lister, nodes, proxies, lambda _node: (), config, clock)
            work = (lister.run(), nodes.run(), proxies.run(), sets.run())
            async with background.running(*work):
                await kit.until(
                    *(client, kinds.TARGETS),
                    lambda all_: (
                        len(all_) == 2
                        and all("lastClusterProfile" in objects.status(t) for t in all_.values())
                    ),
                    namespace=namespace,
                )
                ready = {"type": "Ready", "status": "True", "reason": "Connected", "message": ""}
                status = {"conditions": [{**ready, "lastTransitionTime": made_at(made)}]}
                await client.patch(
                    *(kinds.TARGETS, "west", {"status": status}, namespace), subresource="status"
                )
                await client.delete(kinds.CLUSTER_PROFILES, "east", namespace)
                await kit.until(
                    *(client, kinds.TARGETS), lambda all_: len(all_) == 1, namespace=namespace
                )
                await kit.until_one(
                    *(client, kinds.TARGET_SETS, namespace, namespace),
                    lambda obj: objects.status(obj).get("found") == 1,
                )
                body = {"metadata": {"annotations": {keys.CONFIRM_REMOVAL: "1"}}}
                await client.patch(kinds.TARGET_SETS, namespace, body, namespace)
                await kit.until_one(
                    *(client, kinds.TARGET_SETS, namespace, namespace),
                    lambda obj: keys.CONFIRM_REMOVAL not in objects.annotations(obj),
                )
                assert objects.metadata(made)["generation"] == 1
    finally:
        await client.delete(kinds.CLUSTER_ROLE_BINDINGS, namespace)
        await inventory.uninstall(client)
