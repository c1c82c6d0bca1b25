"""A fleet of ClusterProfiles: what an inventory changes while pods flow costs no pod.

Whole agents, with the inventory's own CRD and plugin. Profiles come and go, tokens are replaced and
revoked, servers move, conditions change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from hack.fleetlib.inventory import NAMESPACE
from tests import background, decisions, inventory, kit, placement_policies
from tests.faults import agent_metrics
from tests.faults.bound_tokens import BoundTokens
from tests.faults.pod_flow import PodFlow, on
from tests.faults.profiles import (
    control_plane_reason,
    echo,
    move,
    other_address,
    provider_of,
    says_again,
    set_condition,
)
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

C2, C3, C4 = (names.virtual_node("", name) for name in ("c2", "c3", "c4"))
LABELS = {"fleet": "local"}  # of the fleet's profiles
CONDITIONS = 20
SECONDS = 10  # for which pods are made
RATE = 5  # pods a second; the test itself passes on all that the agent asks of their cluster


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a source with three targets, which it knows by ClusterProfiles."""
    words = ["c1", "c2", "c3", "c4", "--nodes", "3", "--agents", "--inventory"]
    for name in ("c2", "c3", "c4"):
        words += ["--connect", f"c1:{name}"]

    with started(tmp_path_factory, *words) as there:
        yield there


async def test_a_hundred_conditions_cost_no_list_no_run_of_a_plugin_and_no_stream(
    fleet: Fleet, source: Client
) -> None:
    await run_on_c2(source, "listener")
    costs = ("vnode_informer_lists_total", "vnode_exec_plugin_run_duration_seconds_count")
    before = await asyncio.to_thread(agent_metrics.lines_of, fleet, *costs)
    assert len(before) > len(costs)
    async with echo(fleet, "listener") as stream:
        await says_again(stream, "before")
        for number in range(100):
            await set_condition(source, "c2", number)

        await kit.until_one(
            *(source, kinds.CLUSTER_TARGETS, "c2", ""),
            lambda target: control_plane_reason(target) == "Told99",
        )
        await says_again(stream, "after")

    assert await asyncio.to_thread(agent_metrics.lines_of, fleet, *costs) == before


async def test_token_server_and_conditions_change_under_load_and_no_pod_is_lost(
    fleet: Fleet, source: Client, target: Client
) -> None:
    provider = await provider_of(source, "c2")
    tokens = BoundTokens(fleet, source, target)
    former = await tokens.begin()
    await run_on_c2(source, "steady")
    flow = PodFlow(source, C2, count=RATE * SECONDS)

    async def conditions() -> None:
        for number in range(CONDITIONS):
            await set_condition(source, "c2", number)
            await asyncio.sleep(SECONDS / CONDITIONS)

    async def rotate() -> None:
        await asyncio.sleep(SECONDS / 5)
        await tokens.replace()
        await tokens.revoke_former(former)

    async with (
        other_address(fleet) as (server, counts),
        echo(fleet, "steady") as stream,
        background.running(*flow.watches()),
    ):
        await says_again(stream, "before")
        async with asyncio.TaskGroup() as group:
            group.create_task(flow.run(rate=RATE))
            group.create_task(conditions())
            group.create_task(rotate())
            await asyncio.sleep(SECONDS / 2)
            await move(source, "c2", provider, server)

        await says_again(stream, "while its server is elsewhere")
        async with asyncio.timeout(kit.PATIENCE):
            await flow.all_run.wait()

        await move(source, "c2", provider, provider["cluster"]["server"])
        await run_on_c2(source, "last")
        await says_again(stream, "after")

    assert counts["requests"]
    await flow.check(target)
    await kit.until_one(
        *(source, kinds.CLUSTER_TARGETS, "c2", ""),
        lambda obj: control_plane_reason(obj) == f"Told{CONDITIONS - 1}",
    )


async def run_on_c2(source: Client, name: str) -> None:
    """Make a pod for c2, and wait until it runs."""
    await source.create(kinds.PODS, kit.pod(name, nodeSelector=on(C2)), "default")
    await kit.until_one(
        *(source, kinds.PODS, name, "default"), lambda pod: kit.phase(pod) == "Running"
    )
    await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready)


async def test_a_profile_that_goes_ends_its_own_target_alone_until_it_comes_again(
    source: Client, c2: Client
) -> None:
    await run_on_c2(source, "bystander")
    profile = await source.get(kinds.CLUSTER_PROFILES, "c3", NAMESPACE)
    away: list[str] = []
    node = Informer.of_object(source, kinds.NODES, C2)
    node.subscribe(
        lambda _old, new: away.append("not ready") if not kit.is_ready(new or {}) else None
    )
    async with background.running(node.run()):
        await source.delete(kinds.CLUSTER_PROFILES, "c3", NAMESPACE)
        gone = await until_reason(source, "c3", "ProfileNotFound")
        assert not kit.is_ready(gone)
        message = (objects.condition(gone, "Ready") or {})["message"]
        assert "kubectl get clusterprofiles" in message
        await run_on_c2(source, "meanwhile")
        await inventory.add_profile(source, NAMESPACE, "c3", objects.status(profile), **LABELS)
        await until_reason(source, "c3", "Connected")

    await kit.until_one(source, kinds.NODES, C3, "", kit.is_ready)
    assert not away
    pods = await c2.list(kinds.PODS, "default")
    assert {kit.phase(pod) for pod in pods} == {"Running"}
    found = await source.get(kinds.PODS, "bystander", "default")
    assert kit.phase(found) == "Running"


async def until_reason(source: Client, name: str, reason: str) -> Object:
    """Wait until a Target is, or is not, ready for that reason."""
    return await kit.until_one(
        *(source, kinds.CLUSTER_TARGETS, name, ""),
        lambda target: inventory.reason(target) == reason,
    )


async def hand_over_to_a_set(source: Client) -> None:
    """Have a set make the Targets of all profiles, in the place of those made by hand."""
    for name in ("c2", "c3", "c4"):
        await source.delete(kinds.CLUSTER_TARGETS, name)

    await kit.until_gone(source, kinds.CLUSTER_TARGETS)
    spec = {
        "profiles": {"namespace": NAMESPACE, "selector": {"matchLabels": LABELS}},
        "removal": {"after": "1s", "maxPerMinute": 600},
    }
    await source.create(kinds.CLUSTER_TARGET_SETS, {"metadata": {"name": "local"}, "spec": spec})


async def until_targets(source: Client, *wanted: str) -> None:
    """Wait until the Targets are these, all of them Ready."""

    def are_so(targets: dict[str, Object]) -> bool:
        return targets.keys() == set(wanted) and all(map(kit.is_ready, targets.values()))

    await kit.until(source, kinds.CLUSTER_TARGETS, are_so)


async def test_three_profiles_of_a_set_come_change_rotate_and_go_while_pods_flow(
    fleet: Fleet, source: Client, c2: Client, c3: Client, c4: Client
) -> None:
    for pod in await source.list(kinds.PODS, "default"):
        await source.delete(kinds.PODS, objects.name(pod), "default", grace=0)

    await kit.until_gone(source, kinds.PODS, "default")
    profile = await source.get(kinds.CLUSTER_PROFILES, "c4", NAMESPACE)
    await source.delete(kinds.CLUSTER_PROFILES, "c4", NAMESPACE)
    await hand_over_to_a_set(source)
    await until_targets(source, "c2", "c3")
    tokens = BoundTokens(fleet, source, c3, "c3")
    former = await tokens.begin()
    await until_targets(source, "c2", "c3")
    flows = {node: PodFlow(source, node, 30, node) for node in (C2, C3)}
    passing = PodFlow(source, C4, 10, C4)
    watches = [watch for flow in (*flows.values(), passing) for watch in flow.watches()]

    async def come_and_go() -> None:
        await inventory.add_profile(source, NAMESPACE, "c4", objects.status(profile), **LABELS)
        await passing.all_run.wait()
        await source.delete(kinds.CLUSTER_PROFILES, "c4", NAMESPACE)
        await until_targets(source, "c2", "c3")

    async def change() -> None:
        for number in range(CONDITIONS):
            await set_condition(source, "c2", number)
            await source.patch(
                *(kinds.CLUSTER_PROFILES, "c2"),
                {"metadata": {"labels": {"example.com/round": str(number)}}},
                NAMESPACE,
            )
            await asyncio.sleep(SECONDS / CONDITIONS)

    async def rotate() -> None:
        await tokens.replace()
        await tokens.revoke_former(former)

    async with background.running(*watches), asyncio.timeout(kit.PATIENCE):
        async with asyncio.TaskGroup() as group:
            for flow in (*flows.values(), passing):
                group.create_task(flow.run(rate=3))  # each: two cores have 13 pods a second

            for act in (come_and_go, change, rotate):
                group.create_task(act())

        for flow in flows.values():
            await flow.all_run.wait()

    await flows[C2].check(c2)
    await flows[C3].check(c3)
    await kit.until_one(
        *(source, kinds.NODES, C2, ""),
        lambda node: objects.labels(node).get("example.com/round") == str(CONDITIONS - 1),
    )
    await kit.until_gone(source, kinds.NODES, field_selector=f"metadata.name={C4}")
    await kit.until_gone(source, kinds.PODS, "default", label_selector=C4)
    await kit.until_gone(c4, kinds.PODS, "default")
    await kit.until_gone(c4, kinds.POD_CHAPERONS, "default")


def decided(policy: Object) -> str:
    """Return what a policy says of the decision that it follows."""
    return str((objects.condition(policy, "Decided") or {}).get("message", ""))


async def test_pods_follow_a_decision_about_profiles_and_another_is_published(
    fleet: Fleet, source: Client
) -> None:
    await decisions.install(source, decisions.SIG)
    reference = decisions.reference(decisions.SIG, "web")
    await placement_policies.create(source, "web", clusters={"decisionRef": reference})

    async def decide(*profiles: str) -> None:
        named = [f"{NAMESPACE}/{name}" for name in profiles]
        await decisions.decide(source, decisions.of_profiles("web", *named))
        await kit.until_one(
            *(source, kinds.PLACEMENT_POLICIES, "web", "default"),
            lambda policy: f"selects {', '.join(named)}" in decided(policy),
        )

    async def runs(name: str, node: str) -> None:
        template: dict[str, Any] = kit.pod(name)
        template["metadata"]["labels"]["app"] = "web"
        await source.create(kinds.PODS, template, "default")
        pod = await kit.until_running(source, name)
        assert objects.node_name(pod) == node

    await decide("c3")
    await runs("web-0", C3)
    await decide("c2")
    await runs("web-1", C2)
    await publish(fleet, source, "web")


async def publish(fleet: Fleet, source: Client, policy: str) -> None:
    """Have the agent publish, by the role that it is given for that, where a policy's pods run."""
    await decisions.allow_publishing(source)
    spec = {"publish": {"name": "shop"}}
    await source.patch(kinds.PLACEMENT_POLICIES, policy, {"spec": spec}, "default")
    waited = ("c1", f"placementpolicy/{policy}", "Published", "Decided", "Ready")
    await asyncio.to_thread(fleet.wait, *waited)
    published = await source.get(kinds.PLACEMENT_POLICIES, policy, "default")
    message = (objects.condition(published, "Published") or {})["message"]
    assert message == "placementdecision/default/shop has 2 clusters"
    found = await source.get(decisions.SIG, "shop-0", "default")
    references = [entry["clusterProfileRef"] for entry in found["decisions"]]
    assert {(r["namespace"], r["name"]) for r in references} == {
        (NAMESPACE, "c2"),
        (NAMESPACE, "c3"),
    }
    await placement_policies.delete(source, policy)
    await kit.until_gone(source, decisions.SIG, "default", field_selector="metadata.name=shop-0")
