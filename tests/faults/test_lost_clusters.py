"""A cluster is cut off for a while: what goes on, what is replaced, and what is so afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from tests import kit, placement_policies
from tests.fleets import started
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

C2, C3 = (names.virtual_node("default", target) for target in ("c2", "c3"))
PATIENCE = 5  # tolerationSeconds of impatient pods


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    words = ("c1", "c2", "c3", "--nodes", "1", "--agents")
    connections = ("--connect", "c1:c2", "--connect", "c1:c3")
    with started(tmp_path_factory, *words, *connections) as there:
        yield there


@pytest.fixture
async def only_c2(fleet: Fleet, source: Client) -> AsyncIterator[None]:
    """Cordon the node of c3: no pod goes there until the test uncordons it, or ends."""
    await asyncio.to_thread(fleet.kubectl, "c1", "cordon", C3)
    yield
    await asyncio.to_thread(fleet.kubectl, "c1", "uncordon", C3)


def impatient(name: str) -> Object:
    tolerations = [
        {
            "key": f"node.kubernetes.io/{kind}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": PATIENCE,
        }
        for kind in ("not-ready", "unreachable")
    ]
    return kit.pod(name, tolerations=tolerations)


async def deployed(source: Client, name: str, template: Object, replicas: int) -> dict[str, Object]:
    await source.create(kinds.DEPLOYMENTS, kit.deployment(name, replicas, template), "default")
    return await kit.until_pods(source, name, lambda all_: kit.running(all_, replicas))


async def remove(source: Client, *deployments: str) -> None:
    for name in deployments:
        await source.delete(kinds.DEPLOYMENTS, name, "default", propagation="Background")
        await kit.until_gone(source, kinds.PODS, "default", label_selector=f"app={name}")


async def delegates(client: Client, app: str) -> dict[str, Object]:
    """Return the delegates of a Deployment's pods, by the UIDs of the delegates."""
    found = await client.list(
        kinds.PODS, "default", label_selector=f"{keys.PREFIX}app={app},{keys.PARENT_UID}"
    )
    return {objects.uid(pod): pod for pod in found}


async def test_a_lost_targets_pods_are_replaced_as_they_wish_and_end_when_it_is_back(
    fleet: Fleet, source: Client, c2: Client, only_c2: None
) -> None:
    before = await deployed(source, "impatient", impatient("impatient"), 3)
    patient = await deployed(source, "patient", kit.pod("patient"), 2)
    stale, kept = await delegates(c2, "impatient"), await delegates(c2, "patient")
    assert (len(stale), len(kept)) == (3, 2)
    await asyncio.to_thread(fleet.kubectl, "c1", "uncordon", C3)
    await asyncio.to_thread(fleet.run, "partition", "c2")
    cut = time.monotonic()
    try:
        node = await kit.until_one(source, kinds.NODES, C2, "", lambda n: not kit.is_ready(n))
        noticed = time.monotonic() - cut
        assert (objects.condition(node, "Ready") or {})["reason"] == "Unreachable"
        await kit.until_pods(
            source,
            "impatient",
            lambda all_: (
                sum(
                    kit.phase(pod) == "Running" and objects.spec(pod)["nodeName"] == C3
                    for pod in all_.values()
                    if "nodeName" in objects.spec(pod)
                )
                == 3
            ),
        )
        replaced = time.monotonic() - cut
        old = [
            await source.get(kinds.PODS, objects.name(pod), "default") for pod in before.values()
        ]
        assert all(objects.is_terminating(pod) for pod in old)
        assert [objects.uid(pod) for pod in old] == [objects.uid(p) for p in before.values()]
    finally:
        back = time.monotonic()
        await asyncio.to_thread(fleet.run, "heal", "c2")

    after = await kit.until_pods(source, "impatient", lambda all_: kit.running(all_, 3))
    ended = time.monotonic() - back
    assert not {objects.uid(p) for p in before.values()} & {objects.uid(p) for p in after.values()}
    assert not await delegates(c2, "impatient")
    assert (await delegates(c2, "patient")).keys() == kept.keys()
    now = await kit.until_pods(source, "patient", lambda all_: kit.running(all_, 2))
    assert {objects.uid(p) for p in now.values()} == {objects.uid(p) for p in patient.values()}
    await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready)
    print(
        f"\nnot ready after {noticed:.1f} s, replaced after {replaced:.1f} s, "
        f"stale ones ended {ended:.1f} s after the return"
    )
    assert noticed < 90  # forty of them are what the node controller waits for
    await remove(source, "impatient", "patient")


async def test_a_lost_sources_pods_run_on_and_are_made_anew_if_they_are_evicted(
    fleet: Fleet, source: Client, c2: Client, only_c2: None
) -> None:
    pods = await deployed(source, "alone", kit.pod("alone"), 2)
    first, second = (await delegates(c2, "alone")).values()
    await asyncio.to_thread(fleet.run, "partition", "c1")
    try:
        await c2.discard(kinds.PODS, first)
        key = objects.key(first)
        found = await kit.until(
            c2,
            kinds.PODS,
            lambda all_: (
                key in all_
                and objects.uid(all_[key]) != objects.uid(first)
                and kit.phase(all_[key]) == "Running"
            ),
            namespace="default",
            label_selector=f"{keys.PREFIX}app=alone",
        )
        assert objects.uid(found[objects.key(second)]) == objects.uid(second)
    finally:
        await asyncio.to_thread(fleet.run, "heal", "c1")

    now = await kit.until_pods(source, "alone", lambda all_: kit.running(all_, 2))
    assert {objects.uid(pod) for pod in now.values()} == {objects.uid(pod) for pod in pods.values()}
    again = found[key]
    parent = objects.annotations(again)[keys.PARENT_NAME]
    await kit.until_one(
        source,
        kinds.PODS,
        parent,
        "default",
        lambda p: objects.status(p).get("podIP") == objects.status(again)["podIP"],
    )
    await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready)
    await remove(source, "alone")


async def test_a_policy_replaces_the_pods_of_a_lost_target_at_its_own_rate(
    fleet: Fleet, source: Client, c2: Client, only_c2: None
) -> None:
    failover = {"tolerationSeconds": 5, "maxEvictionsPerMinute": 30}
    await placement_policies.create(source, "web", failover=failover)
    before = await deployed(source, "web", kit.pod("web"), 3)
    seconds = [
        toleration.get("tolerationSeconds")
        for pod in before.values()
        for toleration in objects.spec(pod)["tolerations"]
        if toleration.get("effect") == "NoExecute"
    ]
    assert seconds == [None] * 6
    await asyncio.to_thread(fleet.kubectl, "c1", "uncordon", C3)
    await asyncio.to_thread(fleet.run, "partition", "c2")
    try:
        await kit.until_pods(
            source,
            "web",
            lambda all_: sum(objects.is_terminating(pod) for pod in all_.values()) == 3,
        )
        ending = await source.list(kinds.PODS, "default", label_selector="app=web")
        moments = [
            objects.parse_timestamp(str(objects.metadata(pod).get("deletionTimestamp")))
            for pod in ending
        ]
        deleted = sorted(moment.timestamp() for moment in moments if moment)
        assert deleted[1] - deleted[0] >= 1
        assert deleted[2] - deleted[1] >= 1
        await kit.until_event(
            source, "default", "reason=FailedOver", "moved by placementpolicy/web (failover)"
        )
        await kit.until_pods(
            source,
            "web",
            lambda all_: sum(_runs_in(pod, C3) for pod in all_.values()) == 3,
        )
    finally:
        await asyncio.to_thread(fleet.run, "heal", "c2")

    after = await kit.until_pods(source, "web", lambda all_: kit.running(all_, 3))
    assert all(_runs_in(pod, C3) for pod in after.values())
    assert not await delegates(c2, "web")
    await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready)
    await placement_policies.delete(source, "web")
    await remove(source, "web")


async def test_whether_a_target_is_lost_is_not_up_to_other_controllers(
    fleet: Fleet, source: Client, c2: Client, only_c2: None
) -> None:
    """Kubernetes sets no taints, and a cloud controller deletes the Node again and again."""
    await placement_policies.create(source, "moved", failover={"tolerationSeconds": 5})
    await deployed(source, "moved", kit.pod("moved"), 2)
    await deployed(source, "impatient", impatient("impatient"), 2)
    patient = await deployed(source, "patient", kit.pod("patient"), 2)
    await asyncio.to_thread(fleet.kubectl, "c1", "cordon", C2)
    await asyncio.to_thread(fleet.run, "stop", "c1", "kube-controller-manager")
    await asyncio.to_thread(fleet.run, "partition", "c2")
    uids = set[str]()
    deleting = asyncio.create_task(_delete_unready(source, uids))
    try:
        for name in ("moved", "impatient"):
            await kit.until_pods(
                source,
                name,
                lambda all_: sum(objects.is_terminating(pod) for pod in all_.values()) == 2,
            )
    finally:
        await asyncio.to_thread(fleet.run, "heal", "c2")

    node = await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready)
    deleting.cancel()
    await asyncio.to_thread(fleet.run, "start", "c1", "kube-controller-manager")
    assert uids
    assert objects.uid(node) not in uids
    assert objects.spec(node).get("unschedulable") is True
    now = await kit.until_pods(source, "patient", lambda all_: kit.running(all_, 2))
    assert {objects.uid(p) for p in now.values()} == {objects.uid(p) for p in patient.values()}
    await asyncio.to_thread(fleet.kubectl, "c1", "uncordon", C2)
    for name in ("moved", "impatient"):
        await kit.until_pods(source, name, lambda all_: kit.running(all_, 2))

    await placement_policies.delete(source, "moved")
    await remove(source, "moved", "impatient", "patient")


async def _delete_unready(source: Client, uids: set[str]) -> None:
    """Do what a cloud controller does with Nodes that its cloud does not know."""
    while True:
        node = await source.get(kinds.NODES, C2)
        if not kit.is_ready(node):
            await source.discard(kinds.NODES, node)
            uids.add(objects.uid(node))

        await asyncio.sleep(2)


async def test_an_outage_of_the_agent_evicts_nobody(
    fleet: Fleet, source: Client, only_c2: None
) -> None:
    """Neither while it lasts, nor when the agent is back and finds taints that are old."""
    await placement_policies.create(source, "moved", failover={"tolerationSeconds": 5})
    moved = await deployed(source, "moved", kit.pod("moved"), 2)
    hasty = await deployed(source, "impatient", impatient("impatient"), 2)
    await asyncio.to_thread(fleet.run, "stop", "c1", "agent")
    try:
        # As Kubernetes itself does after 50 s.
        ready = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        body = {"status": {"conditions": [ready]}}
        await source.patch(kinds.NODES, C2, body, subresource="status", strategic=True)
        await kit.until_one(source, kinds.NODES, C2, "", _is_unreachable)
        await asyncio.sleep(PATIENCE + 3)  # nothing is to happen
    finally:
        await asyncio.to_thread(fleet.run, "start", "c1", "agent")

    await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready)
    await asyncio.sleep(PATIENCE)  # the same
    for name, before in (("moved", moved), ("impatient", hasty)):
        now = await source.list(kinds.PODS, "default", label_selector=f"app={name}")
        assert {objects.uid(p) for p in now} == {objects.uid(p) for p in before.values()}
        assert not any(map(objects.is_terminating, now))

    await placement_policies.delete(source, "moved")
    await remove(source, "moved", "impatient")


def _is_unreachable(node: Object) -> bool:
    taints = objects.spec(node).get("taints") or ()
    return any((t["key"], t["effect"]) == (keys.NODE_FAILURES[1], "NoExecute") for t in taints)


def _runs_in(pod: Object, node: str) -> bool:
    runs = kit.phase(pod) == "Running" and not objects.is_terminating(pod)
    return runs and objects.node_name(pod) == node
