"""Targets by ClusterProfiles: the real CRD, the inventory's own plugin, real API servers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from tests import inventory, kit
from tests.fleets import vnode
from tests.integration.inventoried import Inventoried, inventoried
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.target_key import TargetKey

__all__ = ["inventoried"]


async def test_an_inventory_that_comes_later_is_noticed_at_once(inventoried: Inventoried) -> None:
    async with inventoried.agent():
        await inventoried.add_target("late")
        late = await inventoried.until_reason("late", "InventoryNotServed")
        message = objects.condition(late, "Ready") or {}
        assert "does not serve clusterprofiles" in message["message"]
        await inventory.install(inventoried.source)
        await inventoried.until_reason("late", "ProfileNotFound")
        await inventoried.add_profile("late", {})
        await inventoried.until_reason("late", "NoAccessProvider")
        status = {"accessProviders": [inventoried.access]}
        await inventoried.set_status("late", status)
        await inventoried.until_reason("late", "Connected")


async def test_an_inventory_that_goes_leaves_connections_alone(inventoried: Inventoried) -> None:
    status = {"credentialProviders": [inventoried.access]}
    async with inventoried.connected(status) as link:
        await inventory.uninstall(inventoried.source)
        await inventoried.until_reason("c2", "InventoryNotServed")
        assert inventoried.link("c2") is link
        await link.client.list(kinds.NAMESPACES)
        await inventory.installed(inventoried.source)
        await inventoried.add_profile("c2", status)
        await inventoried.until_reason("c2", "Connected")


async def test_a_token_that_is_replaced_and_revoked_loses_nothing(inventoried: Inventoried) -> None:
    async with inventoried.connected({"accessProviders": [inventoried.access]}) as link:
        token = await inventoried.renew_account()
        async with asyncio.timeout(kit.PATIENCE):
            while await link.client.authorization() != f"Bearer {token}":
                await link.client.list(kinds.NAMESPACES)  # none of them fails

        await link.client.list(kinds.NAMESPACES)
        assert inventoried.link("c2") is link
        assert link.health.healthy


async def test_a_target_takes_a_profile_of_its_own_namespace(inventoried: Inventoried) -> None:
    source, namespace = inventoried.source, inventoried.namespace
    await inventory.installed(source)
    await inventoried.add_profile("c2", {"accessProviders": [inventoried.access]})
    target = {"metadata": {"name": "own"}, "spec": {"clusterProfile": {"name": "c2"}}}
    await source.create(kinds.TARGETS, target, namespace)
    async with inventoried.agent():
        await kit.until_one(
            *(source, kinds.TARGETS, "own", namespace),
            lambda target: inventory.reason(target) == "Connected",
        )
        link = inventoried.links.get(TargetKey(namespace, "own").node_name)
        assert link is not None
        await link.client.list(kinds.POD_CHAPERONS, namespace)

    await source.delete(kinds.TARGETS, "own", namespace)


async def test_what_the_inventory_says_is_on_the_link_and_on_the_target(
    inventoried: Inventoried, tmp_path: Path
) -> None:
    now = objects.timestamp(SystemClock().now())
    late = {
        "type": "ControlPlaneHealthy",
        "status": "False",
        "reason": "HeartbeatLost",
        "message": "no heartbeat for 5 min",
        "lastTransitionTime": now,
    }
    status = {
        "accessProviders": [inventoried.access],
        "conditions": [late],
        "properties": [{"name": "example.com/memory", "value": "64Gi"}],
        "version": {"kubernetes": "v1.36.3"},
    }
    async with inventoried.connected(status, env="prod") as link:
        target = await inventoried.until_reason("c2", "Connected")
        condition = objects.condition(target, "ControlPlaneHealthy") or {}
        assert (condition["status"], condition["reason"]) == ("False", "HeartbeatLost")
        assert link.health.healthy
        assert link.description.labels == {
            "env": "prod",
            "vnode.dev/cluster-manager": "tests",
            "vnode.dev/cluster-version": "v1.36.3",
            "vnode.dev/property.example.com_memory": "64Gi",
            "vnode.dev/quantity.example.com_memory": str(64 * 2**30),
        }
        changed = {**status, "properties": [{"name": "example.com/memory", "value": "32Gi"}]}
        described = asyncio.Event()
        link.on_health(described.set)
        await inventoried.set_status("c2", changed)
        async with asyncio.timeout(kit.PATIENCE):
            await described.wait()

        label = link.description.labels["vnode.dev/quantity.example.com_memory"]
        assert label == str(32 * 2**30)
        assert inventoried.link("c2") is link

    config = tmp_path / "agent.json"
    config.write_bytes(agent_configuration(inventoried))
    await doctor_tells(inventoried, config)
    listed = await asyncio.to_thread(
        vnode, "get", "targets", "-A", "--kubeconfig", inventoried.kubeconfig
    )
    assert f"clusterprofile/{inventoried.namespace}/c2" in listed.out


def agent_configuration(inventoried: Inventoried) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "vnode.dev/v1alpha1",
            "kind": "AgentConfiguration",
            "inventory": inventoried.config,
        }
    )


async def doctor_tells(inventoried: Inventoried, config: Path) -> None:
    """Check that `vnode doctor` tries the provider, too, if it has the agent's configuration."""
    words = ("doctor", "--kubeconfig", inventoried.kubeconfig, "-o", "json")
    for more, level in ((("--config", config), "ok"), ((), "skip")):
        done = await asyncio.to_thread(vnode, *words, *more)
        findings = msgspec.json.decode(done.out)["findings"]
        found = {f["check"]: f["level"] for f in findings if f["place"] == "target c2"}
        assert found["profile"] == "warn"
        assert (found["provider"], found["plugin"]) == (level, level)
        assert found.get("connection", "skip") == level
