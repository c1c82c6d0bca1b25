"""A target's cluster is exchanged for another one under its name: in order, and after a disaster.

A Deployment with a disruption budget runs in the target, and uses what has to follow its pods. The
source is a target of its own, where pods can go meanwhile. The Target is c2, then c3, and, when c3
is lost, c2 again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests import background, kit
from tests.fleets import Result, started, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

NODE, OWN_NODE = (names.virtual_node("default", target) for target in ("c2", "c1"))
REPLICAS = 6
APP = "app=shop"
OF_APP = f"{keys.PREFIX}app=shop"
BUDGETS = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    words = ("c1", "c2", "c3", "--nodes", "1", "--agents")
    with started(tmp_path_factory, *words, "--connect", "c1:c2", "--connect", "c1:c1") as there:
        yield there


def shop() -> Object:
    """Return a pod that needs a ConfigMap and a Secret, and does not wait for a lost node."""
    tolerations = [
        {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute"}
        for word in ("not-ready", "unreachable")
    ]
    pod = kit.pod("shop", annotations={keys.ELECT: ""}, tolerations=tolerations)
    pod["spec"]["containers"][0]["envFrom"] = [
        {"configMapRef": {"name": "shop"}},
        {"secretRef": {"name": "shop"}},
    ]
    return pod


@pytest.fixture
async def pods(fleet: Fleet, source: Client) -> AsyncIterator[dict[str, Object]]:
    """Yield the pods of a Deployment, all in the Target c2.

    Others may go to the source itself as well, once the test has uncordoned its node.
    """
    await asyncio.to_thread(fleet.kubectl, "c1", "cordon", OWN_NODE)
    for kind in (kinds.CONFIG_MAPS, kinds.SECRETS):
        await source.apply(
            kind, {"metadata": {"name": "shop", "namespace": "default"}}, manager="test"
        )

    service = {"selector": {"app": "shop"}, "ports": [{"port": 80}]}
    await source.create(kinds.SERVICES, {"metadata": {"name": "shop"}, "spec": service}, "default")
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "shop"}}}
    await source.create(BUDGETS, {"metadata": {"name": "shop"}, "spec": budget}, "default")
    await source.create(kinds.DEPLOYMENTS, kit.deployment("shop", REPLICAS, shop()), "default")
    yield await until_run(source, NODE)
    await source.delete(kinds.DEPLOYMENTS, "shop", "default", propagation="Background")
    for kind in (kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES, BUDGETS):
        await source.delete(kind, "shop", "default")

    await kit.until_gone(source, kinds.PODS, "default", label_selector=APP)


async def until_run(source: Client, node: str = "", replicas: int = REPLICAS) -> dict[str, Object]:
    """Return all pods of the Deployment, which run, and on that node if one is given."""

    def there(found: dict[str, Object]) -> bool:
        nodes = {objects.node_name(pod) for pod in found.values()}
        return kit.running(found, replicas) and (not node or nodes == {node})

    return await kit.until(source, kinds.PODS, there, namespace="default", label_selector=APP)


def replace_target(fleet: Fleet, new: str, *words: str | Path, target: str = "c2") -> Result:
    """Run `vnode replace-target` to exchange a Target's cluster for the `new` one."""
    files = ("--source", fleet.kubeconfig("c1"), "--target", fleet.kubeconfig(new))
    return vnode("replace-target", target, *files, "-n", "default", *words)


@asynccontextmanager
async def least_ready(source: Client) -> AsyncIterator[list[int]]:
    """Yield how many pods were ready, after each change; the list grows."""
    counts: list[int] = []
    informer = Informer(source, kinds.PODS, namespace="default", label_selector=APP)

    def on_pod(_old: Object | None, _new: Object | None) -> None:
        if informer.synced.is_set():
            found = informer.store.values()
            counts.append(sum(kit.is_ready(p) and not objects.is_terminating(p) for p in found))

    informer.subscribe(on_pod)
    async with background.running(informer.run()):
        await informer.synced.wait()
        yield counts


async def runs_once(source: Client, *clusters: Client) -> None:
    """Check that each pod has exactly one delegate in the source and these clusters together."""
    found = await source.list(kinds.PODS, "default", label_selector=APP)
    wanted = sorted(objects.uid(pod) for pod in found)
    delegates = [
        objects.labels(pod)[keys.PARENT_UID]
        for client in (source, *clusters)
        for pod in await client.list(
            kinds.PODS, "default", label_selector=f"{OF_APP},{keys.PARENT_UID}"
        )
    ]
    assert sorted(delegates) == wanted


async def nothing_stays(former: Client) -> None:
    """Check that no chaperon, delegate or copy is left in that cluster."""
    for kind in (kinds.POD_CHAPERONS, kinds.PODS, *kinds.FOLLOWING):
        if kind not in kinds.FOLLOWING_BY_EXTRA_ROLE:
            left = await former.list(kind, "default", label_selector=keys.PARENT_CLUSTER_NAME)
            assert [objects.key(obj) for obj in left] == [], kind.plural


async def followers_came_first(new: Client) -> None:
    """Check that what delegates use was made before them, or in the same second."""
    delegates = await new.list(kinds.PODS, "default", label_selector=OF_APP)
    assert delegates
    oldest = min(str(objects.metadata(pod)["creationTimestamp"]) for pod in delegates)
    for kind in (kinds.CONFIG_MAPS, kinds.SECRETS):
        copy = await new.get(kind, "shop", "default")
        assert str(objects.metadata(copy)["creationTimestamp"]) <= oldest

    await kit.until_one(new, kinds.SERVICES, "shop", "default", bool)


async def test_what_cannot_be_replaced_is_refused_with_the_reason(
    fleet: Fleet, source: Client
) -> None:
    for words, reason in (
        (("c1", {}), "--target leads to the source itself"),
        (("c3", {"target": "c1"}), "default/c1 is the source itself, which no other cluster can"),
        (("c3", {"target": "c9"}), "there is no Target 'c9' in namespace 'default'"),
    ):
        new, more = words
        refused = await asyncio.to_thread(replace_target, fleet, new, **more)
        assert (refused.code, refused.err.count("\n")) == (1, 1)
        assert reason in refused.err

    absent = ("--agent-namespace", "default")
    refused = await asyncio.to_thread(replace_target, fleet, "c3", *absent)
    assert "no agent is running in the source (namespace default)" in refused.err
    node = await source.get(kinds.NODES, NODE)
    assert not objects.spec(node).get("unschedulable")


async def test_a_target_is_replaced_in_order_within_the_budget(
    fleet: Fleet, source: Client, c2: Client, c3: Client, pods: dict[str, Object]
) -> None:
    planned = await asyncio.to_thread(replace_target, fleet, "c3", "--dry-run")
    assert planned.code == 0, planned.err
    assert f"evicting pod {min(pods)} (dry run)" in planned.out
    assert {objects.uid(pod) for pod in (await until_run(source, NODE)).values()} == {
        objects.uid(pod) for pod in pods.values()
    }
    await asyncio.to_thread(fleet.kubectl, "c1", "uncordon", OWN_NODE)
    began = time.monotonic()
    async with least_ready(source) as ready:
        words = ("--former", fleet.kubeconfig("c2"), "--max-evictions-per-minute", "0")
        done = await asyncio.to_thread(replace_target, fleet, "c3", *words)
        assert done.code == 0, done.err + done.out
        took = time.monotonic() - began
        await until_run(source)

    print(f"\nreplaced in {took:.1f} s; at least {min(ready)} of {REPLICAS} were ready\n{done.out}")
    assert min(ready) >= REPLICAS - 1
    assert "Left behind" not in done.out
    await nothing_stays(c2)
    assert await c2.list(kinds.SOURCES, "default") == []
    await runs_once(source, c2, c3)

    again = await asyncio.to_thread(replace_target, fleet, "c3", "--former", fleet.kubeconfig("c3"))
    assert again.code == 0, again.err
    assert "--former leads to the new cluster: nothing is deleted there" in again.out
    await asyncio.to_thread(fleet.kubectl, "c1", "cordon", OWN_NODE)
    for pod in await source.list(kinds.PODS, "default", label_selector=APP):
        await source.discard(kinds.PODS, pod)

    await until_run(source, NODE)
    await followers_came_first(c3)
    await runs_once(source, c2, c3)


async def test_a_lost_cluster_is_replaced_and_its_pods_by_their_owners(
    fleet: Fleet, source: Client, c2: Client, c3: Client, pods: dict[str, Object]
) -> None:
    refused = await asyncio.to_thread(replace_target, fleet, "c2", "--lost")
    assert refused.code == 1
    assert "leave --lost out" in refused.err

    await asyncio.to_thread(fleet.run, "partition", "c3")
    first, *_others = pods.values()
    await source.discard(kinds.PODS, first)  # it can end only when its cluster is given up
    scale = {"spec": {"replicas": REPLICAS + 2}}
    await source.patch(kinds.DEPLOYMENTS, "shop", scale, "default")
    refused = await asyncio.to_thread(replace_target, fleet, "c2")
    assert refused.code == 1
    assert "pass --lost" in refused.err

    began = time.monotonic()
    done = await asyncio.to_thread(replace_target, fleet, "c2", "--lost")
    assert done.code == 0, done.err + done.out
    now = await until_run(source, NODE, REPLICAS + 2)
    print(f"\nall ran again after {time.monotonic() - began:.1f} s\n{done.out}")
    assert not {objects.uid(pod) for pod in pods.values()} & {objects.uid(p) for p in now.values()}
    assert "if it ever comes back" in done.out
    await followers_came_first(c2)
    await runs_once(source, c2)
