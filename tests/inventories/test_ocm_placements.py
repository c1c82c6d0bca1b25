"""Open Cluster Management's own placement controller decides where pods of policies go.

A hub with two members, which it calls by other names than their Targets have. The controller's CRDs
are those of its module, too: see tests/ocm_placements.py.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from hack.fleetlib.inventory import NAMESPACE
from tests import background, decisions, kit, ocm_placements, placement_policies
from tests.faults.evicting import is_available
from tests.faults.pod_flow import on
from tests.faults.workloads import BUDGETS
from tests.fleets import started
from tests.kit import Fleet
from tests.ocm_placements import label, labelled, place, score, taint
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

C2, C3 = names.virtual_node("", "c2"), names.virtual_node("", "c3")
BERLIN, PARIS = "berlin", "paris"  # what the hub calls c2 and c3
GPU = labelled(accelerator="t4")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a hub whose agent follows decisions, and takes over taints of ManagedClusters."""
    ocm_placements.get_program()
    words = ("c1", "c2", "c3", "--nodes", "1", "--agents", "--inventory")
    with started(tmp_path_factory, *words, "--connect", "c1:c2", "--connect", "c1:c3") as there:
        asyncio.run(begin(there))
        configure(there)
        ocm_placements.start(there, "c1")
        yield there


async def begin(fleet: Fleet) -> None:
    """Write what OCM's registration would: ManagedClusters, and whose profile is whose."""
    async with fleet.client("c1") as hub:
        await ocm_placements.install(hub, BERLIN, PARIS)
        for profile, cluster in (("c2", BERLIN), ("c3", PARIS)):
            body = {"metadata": {"labels": {keys.OCM_CLUSTER_NAME: cluster}}}
            await hub.patch(kinds.CLUSTER_PROFILES, profile, body, NAMESPACE)


def configure(fleet: Fleet) -> None:
    """Turn on what is off by default."""
    role = "vnode-managed-clusters"
    words = ("create", "clusterrolebinding", role, f"--clusterrole={role}")
    fleet.kubectl("c1", *words, "--serviceaccount=vnode:vnode")
    file = fleet.folder / "c1" / "agent.yaml"
    config = yaml.safe_load(file.read_text())
    config["inventory"]["managedClusterTaints"] = True
    file.write_text(yaml.safe_dump(config))
    for verb in ("stop", "start"):
        fleet.run(verb, "c1", "agent")


@pytest.fixture(autouse=True)
async def _clean(source: Client) -> AsyncIterator[None]:
    """Delete policies and Deployments after each test, and clear what it put on ManagedClusters.

    All else has another name in each test.
    """
    yield
    for kind in (kinds.PLACEMENT_POLICIES, kinds.DEPLOYMENTS):
        query = {"propagationPolicy": "Background"}
        await source.request("DELETE", kind.path("default"), query=query)

    for cluster in (BERLIN, PARIS):
        await label(source, cluster, accelerator=None)
        await taint(source, cluster)


async def deploy(source: Client, name: str, replicas: int, **spec: Any) -> None:
    """Make a Deployment, and the policy of its pods, which follows the Placement of that name."""
    reference = decisions.reference(decisions.OCM, name)
    await placement_policies.create(source, name, clusters={"decisionRef": reference}, **spec)
    body = kit.deployment(name, replicas, kit.pod(name))
    await source.create(kinds.DEPLOYMENTS, body, "default")


async def scale(source: Client, name: str, replicas: int) -> None:
    await source.patch(kinds.DEPLOYMENTS, name, {"spec": {"replicas": replicas}}, "default")


async def until_there(source: Client, name: str, **expected: int) -> dict[str, Object]:
    """Wait until so many pods run behind c2 and c3, and none elsewhere; return them by name."""
    wanted = {{"c2": C2, "c3": C3}[target]: count for target, count in expected.items()}

    def are(pods: dict[str, Object]) -> bool:
        live = [pod for pod in pods.values() if not objects.is_terminating(pod)]
        nodes = [objects.node_name(p) if kit.phase(p) == "Running" else "" for p in live]
        return len(live) == len(pods) and Counter(nodes) == wanted

    return await kit.until_pods(source, name, are)


async def until_wait(source: Client, name: str, count: int, message: str) -> None:
    """Wait until so many pods say why they have no node."""

    def waits(pod: Object) -> bool:
        condition = objects.condition(pod, "PodScheduled") or {}
        return not objects.node_name(pod) and message in str(condition.get("message"))

    def all_do(pods: dict[str, Object]) -> bool:
        return len(pods) == count and all(map(waits, pods.values()))

    await kit.until_pods(source, name, all_do)


async def until_closed(source: Client, node: str) -> None:
    """Wait until the policy `gpu` plans no pods for a virtual node, where some run."""

    def is_so(policy: Object) -> bool:
        workloads = objects.status(policy).get("workloads") or [{}]
        plans = workloads[0].get("targets") or ()
        return any((plan["cluster"], plan.get("planned")) == (node, 0) for plan in plans)

    await kit.until_one(source, kinds.PLACEMENT_POLICIES, "gpu", "default", is_so)


async def reschedule(source: Client) -> None:
    """Have the policy `gpu` move pods after a decision, and return when that is in force."""
    dynamic = {"spec": {"reschedule": {"when": ["DecisionChanged"]}}}
    policy = await source.patch(kinds.PLACEMENT_POLICIES, "gpu", dynamic, "default")
    generation = objects.metadata(policy)["generation"]

    def is_seen(policy: Object) -> bool:
        accepted = objects.condition(policy, "Accepted") or {}
        return bool(accepted.get("observedGeneration") == generation)

    await kit.until_one(source, kinds.PLACEMENT_POLICIES, "gpu", "default", is_seen)


@asynccontextmanager
async def least_available(source: Client) -> AsyncIterator[list[int]]:
    """Yield how many pods were available, after each change; the list grows."""
    counts: list[int] = []
    informer = Informer(source, kinds.PODS, namespace="default", label_selector="app=gpu")

    def on_pod(_old: Object | None, _new: Object | None) -> None:
        if informer.synced.is_set():
            counts.append(sum(map(is_available, informer.store.values())))

    informer.subscribe(on_pod)
    async with background.running(informer.run()):
        await informer.synced.wait()
        yield counts


async def test_pods_wait_for_a_decision_follow_it_and_move_if_the_policy_says_so(
    source: Client,
) -> None:
    await place(source, "gpu", numberOfClusters=1, predicates=[{"requiredClusterSelector": GPU}])
    await ocm_placements.until_decided(source, "gpu")
    await deploy(source, "gpu", 3)
    empty = "placementpolicy/gpu: placement/default/gpu selects no clusters"
    await until_wait(source, "gpu", 3, empty)

    await label(source, BERLIN, accelerator="t4")
    await ocm_placements.until_decided(source, "gpu", BERLIN)
    decided = time.monotonic()
    before = await until_there(source, "gpu", c2=3)
    print(f"\n3 pods ran {time.monotonic() - decided:.1f} s after they were decided for")

    await score(source, BERLIN, -80)
    await score(source, PARIS, -70)
    await label(source, PARIS, accelerator="t4")
    await ocm_placements.until_decided(source, "gpu", PARIS)
    await until_closed(source, C2)
    await scale(source, "gpu", 5)
    after = await until_there(source, "gpu", c2=3, c3=2)
    assert before.keys() <= after.keys()

    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "gpu"}}}
    await source.create(BUDGETS, {"metadata": {"name": "gpu"}, "spec": budget}, "default")
    await reschedule(source)
    async with least_available(source) as available:
        await score(source, BERLIN, 90)
        await ocm_placements.until_decided(source, "gpu", BERLIN)
        decided = time.monotonic()
        await until_there(source, "gpu", c2=5)

    print(f"2 had moved after {time.monotonic() - decided:.1f} s; {min(available)} were available")
    assert min(available) >= 4
    moved = "reason=Moved,involvedObject.kind=PlacementPolicy"
    await kit.until_event(source, "default", moved, "(reschedule)")


async def test_groups_are_filled_in_their_order_and_a_taint_keeps_new_pods_away(
    source: Client,
) -> None:
    await label(source, PARIS, accelerator="t4")
    first = {"groupName": "first", "groupClusterSelector": GPU}
    await place(source, "groups", decisionStrategy={"groupStrategy": {"decisionGroups": [first]}})
    assert len(await ocm_placements.until_decided(source, "groups", PARIS, BERLIN)) == 2
    await deploy(source, "groups", 2, mode="Fill")
    before = await until_there(source, "groups", c3=2)

    await taint(source, PARIS, {"key": "maintenance", "value": "soon", "effect": "NoSelect"})
    await ocm_placements.until_decided(source, "groups", BERLIN)
    tainted = {"key": "maintenance", "value": "soon", "effect": "NoSchedule"}
    await kit.until_one(
        *(source, kinds.NODES, C3, ""),
        lambda node: tainted in (objects.spec(node).get("taints") or ()),
    )
    await scale(source, "groups", 3)
    after = await until_there(source, "groups", c2=1, c3=2)
    assert before.keys() <= after.keys()
    await source.create(kinds.PODS, kit.pod("other", nodeSelector=on(C3)), "default")
    await until_wait(source, "other", 1, "had untolerated taint {maintenance: soon}")

    await taint(source, PARIS)
    await ocm_placements.until_decided(source, "groups", PARIS, BERLIN)
    await kit.until_running(source, "other")
