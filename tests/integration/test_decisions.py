"""Policies that follow decisions, on a real API server with the CRDs of both kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests import background, decisions, kit
from tests.decisions import OCM, SIG, decide, of_placement, of_profiles
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import Invalid
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.placement.decisions import published, slices
from vnode.placement.decisions.publisher import DecisionPublisher
from vnode.placement.policies.collection import PlacementPolicies
from vnode.planning.cluster_decision import DecisionKind, DecisionReference, Publishing
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode
from vnode.targets.target_lister import TargetLister

NODES = [
    PlannedNode(names.virtual_node("", f"decided-{name}"), {keys.CLUSTER_TARGET_NAME: name})
    for name in "ab"
]


@pytest.fixture
async def targets(client: Client) -> AsyncIterator[None]:
    """Make two ClusterTargets, which name profiles of namespace fleet, until the test ends."""
    for name in "ab":
        profile = {"namespace": "fleet", "name": f"p-{name}"}
        target = {"metadata": {"name": f"decided-{name}"}, "spec": {"clusterProfile": profile}}
        await client.create(kinds.CLUSTER_TARGETS, target)

    yield
    for name in "ab":
        await client.delete(kinds.CLUSTER_TARGETS, f"decided-{name}")


@asynccontextmanager
async def kinds_of_others(client: Client) -> AsyncIterator[None]:
    """Uninstall the kinds of both projects when the block ends."""
    try:
        yield
    finally:
        for kind in (SIG, OCM):
            await decisions.uninstall(client, kind)


async def create(client: Client, namespace: str, reference: Object) -> None:
    policy = {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": {}, "clusters": {"decisionRef": reference}},
    }
    await client.create(kinds.PLACEMENT_POLICIES, policy)


async def create_publishing(client: Client, namespace: str) -> Object:
    spec = {"selector": {}, "publish": {"name": "shop"}}
    policy = {"metadata": {"name": "web", "namespace": namespace}, "spec": spec}
    return await client.create(kinds.PLACEMENT_POLICIES, policy)


def clusters(policy: Policy) -> list[str]:
    """Return the clusters that the policy has."""
    found = {share.node for share in policy.shares(NODES)}
    return [node.labels[keys.CLUSTER_TARGET_NAME] for node in NODES if node.name in found]


async def until(policies: PlacementPolicies, key: str, holds: Callable[[Policy], bool]) -> None:
    """Wait until a policy is in force as expected."""
    changed = asyncio.Event()
    policies.subscribe(lambda _: changed.set())
    async with asyncio.timeout(kit.PATIENCE):
        while not ((found := policies.in_force().get(key)) and holds(found)):
            changed.clear()
            await changed.wait()


def reason(policy: Policy) -> str:
    assert policy.decision is not None
    return policy.decision.reason


@pytest.mark.usefixtures("targets")
@pytest.mark.parametrize("kind", [SIG, OCM], ids=["sig", "ocm"])
async def test_a_decision_is_followed_whose_kind_comes_later(
    client: Client, namespace: str, kind: Kind
) -> None:
    def decided(*clusters: str) -> Object:
        if kind is SIG:
            return of_profiles("web", *(f"fleet/p-{c}" for c in clusters), namespace=namespace)

        return of_placement("web", *clusters, namespace=namespace)

    lister = TargetLister(client)
    policies, key = PlacementPolicies(client, lister), f"{namespace}/web"
    async with kinds_of_others(client), background.running(lister.run(), policies.run()):
        await create(client, namespace, decisions.reference(kind, "web"))
        await until(policies, key, lambda found: reason(found) == "DecisionsNotServed")
        await decisions.install(client, kind)
        await until(policies, key, lambda found: reason(found) == "DecisionNotFound")
        await decide(client, decided("b"))
        await until(policies, key, lambda found: clusters(found) == ["b"])
        await decide(client, decided("a", "b"))
        await until(policies, key, lambda found: clusters(found) == ["a", "b"])
        await decide(client, decided())
        await until(policies, key, lambda found: not clusters(found) and not reason(found))
        await decide(client, decided("a"))
        await until(policies, key, lambda found: clusters(found) == ["a"])
        await decisions.uninstall(client, kind)
        await until(policies, key, lambda found: reason(found) == "DecisionsNotServed")


@pytest.mark.parametrize(
    "reference",
    [
        {"kind": "PlacementDecision", "apiGroup": OCM.group, "name": "web"},
        {"kind": "Placement", "apiGroup": SIG.group, "name": "web"},
        {"kind": "Placement", "apiGroup": "", "name": "web"},
        {"kind": "PlacementDecision", "apiGroup": SIG.group},
    ],
)
async def test_the_api_server_refuses_what_cannot_be_followed(
    client: Client, namespace: str, reference: Object
) -> None:
    with pytest.raises(Invalid):
        await create(client, namespace, reference)


async def test_a_cluster_wide_policy_has_to_say_the_namespace(client: Client) -> None:
    policy = {
        "metadata": {"name": "web"},
        "spec": {"clusters": {"decisionRef": decisions.reference(SIG, "web")}},
    }
    with pytest.raises(Invalid, match="namespace"):
        await client.create(kinds.CLUSTER_PLACEMENT_POLICIES, policy)


@pytest.mark.usefixtures("targets")
async def test_a_decision_is_published_changed_and_taken_back(
    client: Client, namespace: str
) -> None:
    lister = TargetLister(client)
    publisher = DecisionPublisher(client, lister.profiles_of_nodes, SystemClock())
    node_a, node_b = (node.name for node in NODES)
    made = await create_publishing(client, namespace)
    kind, where = kinds.PLACEMENT_POLICIES, Publishing(namespace, "shop")
    was_published = asyncio.Event()
    publisher.subscribe(lambda _key: was_published.set())

    async def next_published() -> list[str]:
        was_published.clear()
        async with asyncio.timeout(kit.PATIENCE):
            await was_published.wait()

        found = await client.get(SIG, "shop-0", namespace)
        return [entry["clusterProfileRef"]["name"] for entry in found["decisions"]]

    async with kinds_of_others(client), background.running(lister.run(), publisher.run()):
        await decisions.install(client, SIG)
        await lister.wait_synced()
        publisher.offer("k", made, kind, where, {node_a: 1, node_b: 2})
        assert await next_published() == ["p-b", "p-a"]
        assert publisher.offer("k", made, kind, where, {node_a: 3, node_b: 2}) is not None
        was_published.clear()
        publisher.offer("k", made, kind, None, {})
        async with asyncio.timeout(kit.PATIENCE):
            await was_published.wait()

        assert not await client.list(SIG, namespace)


async def test_two_hundred_and_fifty_clusters_are_three_slices_that_can_be_followed(
    client: Client, namespace: str
) -> None:
    """The kind takes a hundred clusters in an object, and no more."""
    listed = [f"fleet/c{number:03}" for number in range(250)]
    profiles = {names.virtual_node("", objects.split_key(key)[1]): key for key in listed}
    publisher, was_published = (
        DecisionPublisher(client, lambda _namespace: profiles, SystemClock()),
        asyncio.Event(),
    )
    publisher.subscribe(lambda _key: was_published.set())
    made = await create_publishing(client, namespace)
    kind, where = kinds.PLACEMENT_POLICIES, Publishing(namespace, "shop")
    async with kinds_of_others(client), background.running(publisher.run()):
        await decisions.install(client, SIG)
        publisher.offer("k", made, kind, where, dict.fromkeys(profiles, 1))
        async with asyncio.timeout(kit.PATIENCE):
            await was_published.wait()

        found = await client.list(SIG, namespace)
        sizes = {objects.name(obj): len(obj["decisions"]) for obj in found}
        assert sizes == {"shop-0": 100, "shop-1": 100, "shop-2": 50}
        assert {objects.controller_uid(obj) for obj in found} == {objects.uid(made)}
        assert published.is_whole(found, where)
        followed = DecisionReference(DecisionKind.PLACEMENT_DECISION, namespace, "shop")
        decision = slices.read(followed, found, {})
        assert [cluster.name for cluster in decision.clusters] == listed
        assert (decision.problem, decision.oddities) == ("", ())
        with pytest.raises(Invalid, match="at most 100 items"):
            await client.create(SIG, of_profiles("all", *listed[:101], namespace=namespace))
