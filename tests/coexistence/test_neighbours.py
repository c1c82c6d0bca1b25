"""Targets come, are lost, return and go, and nothing of the source's own changes for that.

The tests are steps, in the order in which they stand here, on a fleet with real controllers. The
source has pods that are spread over hosts, zones, regions and racks, Services with topology-aware
routing, a Deployment and a DaemonSet that tolerate everything, and a machine that dies.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

from tests import kit
from tests.coexistence.own import RACK, OwnWorkloads
from tests.kit import Fleet
from vnode.api import keys, kinds, names, node_labels, objects
from vnode.kube.client import Client

TARGETS: Final = (("default", "c2"), ("default", "c3"), ("team-a", "c2"), ("team-b", "c2"))
LOST: Final = [names.virtual_node(*target) for target in TARGETS if target[1] == "c2"]
C3: Final = names.virtual_node("default", "c3")
VIRTUAL: Final = f"{keys.PROVIDER_LABEL}={keys.PROVIDER}"
_SETTLED: Final = 2.0  # seconds in which controllers have reacted to what they were going to


def vnode(*words: str) -> str:
    return kit.run([sys.executable, "-m", "vnode", *words])


def files(fleet: Fleet, target: str) -> list[str]:
    there = fleet.kubeconfig(target)
    return ["--source", str(fleet.kubeconfig("c1")), "--target", str(there)]


async def for_each_target(fleet: Fleet, verb: str) -> None:
    """Connect, or disconnect, all targets at once."""

    def words(namespace: str, target: str) -> list[str]:
        name = ("--name", target) if verb == "connect" else (target,)
        return [verb, *name, "--namespace", namespace, *files(fleet, target)]

    await asyncio.gather(*(asyncio.to_thread(vnode, *words(*target)) for target in TARGETS))


async def connect(fleet: Fleet) -> None:
    for cluster in ("c1", "c2"):
        for namespace in sorted({namespace for namespace, _ in TARGETS} - {"default"}):
            await asyncio.to_thread(fleet.kubectl, cluster, "create", "namespace", namespace)

    await for_each_target(fleet, "connect")


async def until_ready(c1: Client, ready: bool, *nodes: str) -> None:
    def settled(found: dict[str, Any]) -> bool:
        wanted = [found.get(node) for node in nodes]
        return all(node is not None and kit.is_ready(node) is ready for node in wanted)

    await kit.until(c1, kinds.NODES, settled, label_selector=VIRTUAL)


async def unchanged(own: OwnWorkloads, before: dict[str, Any]) -> None:
    """Fail if anything is other than before, once controllers had time to react."""
    await asyncio.sleep(_SETTLED)
    assert await asyncio.to_thread(own.state) == before


async def goes_on(own: OwnWorkloads) -> None:
    """Fail if workloads cannot be replaced as they could before, or routing is another."""
    await asyncio.to_thread(own.restart_all)
    for service in ("hinted", "close"):
        await asyncio.to_thread(own.await_hints, service)

    assert {*own.on_virtual_nodes()} <= {"DaemonSet"}


async def test_a_connection_changes_nothing(fleet: Fleet, own: OwnWorkloads, c1: Client) -> None:
    before = await asyncio.to_thread(own.state)
    await connect(fleet)
    await until_ready(c1, True, C3, *LOST)
    await unchanged(own, before)
    await goes_on(own)


async def test_vnode_still_chooses_by_places(c1: Client, own: OwnWorkloads) -> None:
    node = await c1.get(kinds.NODES, C3)
    hidden = node_labels.hidden_of(node)
    assert hidden["topology.kubernetes.io/region"] == "c3"
    assert hidden[RACK] == "in-c3"
    constraints = "nodeSelector: {topology.kubernetes.io/zone: c3-a, example.com/rack: in-c3}"
    annotations = {keys.ELECT: "", keys.PROXY_CONSTRAINTS: constraints}
    await c1.create(kinds.PODS, kit.pod("placed", annotations=annotations), "default")
    placed = await kit.until_running(c1, "placed")
    assert objects.node_name(placed) == C3
    assert objects.labels(placed)["topology.kubernetes.io/region"] == "c3"
    plain = kit.pod(
        "plain",
        annotations={},
        nodeSelector={"kubernetes.io/hostname": C3},
        tolerations=[{"key": keys.PROVIDER_LABEL, "operator": "Exists"}],
    )
    await c1.create(kinds.PODS, plain, "default")
    assert objects.node_name(await kit.until_running(c1, "plain")) == C3


async def test_pods_that_were_lured_while_no_agent_ran_are_made_anew(
    fleet: Fleet, own: OwnWorkloads
) -> None:
    await asyncio.to_thread(fleet.run, "stop", "c1", "agent")
    restart = ("rollout", "restart", "deployment/operator", "--namespace", "kube-system")
    await asyncio.to_thread(own.kubectl, *restart)
    await asyncio.to_thread(own.until_lured)
    await asyncio.to_thread(fleet.run, "start", "c1", "agent")
    await asyncio.to_thread(own.await_all, "deployment/operator")
    assert {*own.on_virtual_nodes()} <= {"DaemonSet"}


async def test_lost_targets_change_nothing_and_a_dead_machine_is_evicted(
    fleet: Fleet, own: OwnWorkloads, c1: Client
) -> None:
    before = await asyncio.to_thread(own.state)
    await asyncio.to_thread(fleet.run, "partition", "c2")
    await until_ready(c1, False, *LOST)
    await unchanged(own, before)
    await goes_on(own)
    await dying_machine(c1)
    dead = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Dead"}]}}
    await c1.patch(kinds.NODES, "dying", dead, subresource="status", strategic=True)
    await kit.until_one(c1, kinds.PODS, "victim", "default", objects.is_terminating)
    there = ("--all-namespaces", "--field-selector", "spec.nodeName=dying")
    await c1.delete(kinds.NODES, "dying")
    await asyncio.to_thread(own.kubectl, "delete", "pods", *there, "--force", "--grace-period=0")
    await asyncio.to_thread(own.await_all)


async def dying_machine(c1: Client) -> None:
    """Add a machine that is no place, and which routing leaves out, with a pod on it."""
    labels = {"node-role.kubernetes.io/control-plane": ""}
    await c1.create(kinds.NODES, {"metadata": {"name": "dying", "labels": labels}})
    ready = {"type": "Ready", "status": "True", "reason": "Alive"}
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    status = {"conditions": [ready], "capacity": amounts, "allocatable": amounts}
    await c1.patch(kinds.NODES, "dying", {"status": status}, subresource="status", strategic=True)
    taint = {"spec": {"taints": [{"key": "dying", "effect": "NoSchedule"}]}}
    await c1.patch(kinds.NODES, "dying", taint)
    at_once = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    tolerations = [
        {**at_once, "key": f"node.kubernetes.io/{kind}"} for kind in ("not-ready", "unreachable")
    ]
    victim = kit.pod("victim", annotations={}, nodeName="dying", tolerations=tolerations)
    await c1.create(kinds.PODS, victim, "default")


async def test_returned_targets_change_nothing(fleet: Fleet, own: OwnWorkloads, c1: Client) -> None:
    before = await asyncio.to_thread(own.state)
    await asyncio.to_thread(fleet.run, "heal", "c2")
    await until_ready(c1, True, *LOST)
    await unchanged(own, before)


async def test_an_end_of_all_connections_changes_nothing(
    fleet: Fleet, own: OwnWorkloads, c1: Client
) -> None:
    before = await asyncio.to_thread(own.state)
    fleet.kubectl("c1", "delete", "pods", "placed", "plain", "--namespace", "default")
    await for_each_target(fleet, "disconnect")
    await kit.until_gone(c1, kinds.NODES, label_selector=VIRTUAL)
    await unchanged(own, before)
    assert own.on_virtual_nodes() == []
