"""A chain of three clusters: c1 sends to c2, which sends on to c3; c2 could send back to c1 too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.fleets import started, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects, permissions
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

TRAVELS = {keys.ELECT: "", keys.FORWARD: ""}
LEAF_NODE = names.virtual_node("default", "c3")  # in c2


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a fleet that is connected c1 -> c2 -> c3, and c2 -> c1."""
    words = ["c1", "c2", "c3", "--nodes", "1", "--agents"]
    for pair in ("c1:c2", "c2:c3", "c2:c1"):
        words += ["--connect", pair]

    with started(tmp_path_factory, *words, sources=("c1", "c2", "c3")) as there:
        yield there


@pytest.fixture(autouse=True)
async def _clean(c1: Client, c2: Client, c3: Client) -> AsyncIterator[None]:
    """Delete the pods of c1 after each test, and wait until nothing is left in any cluster."""
    yield
    query = {"propagationPolicy": "Background"}
    await c1.request("DELETE", kinds.PODS.path("default"), query=query)
    await all_gone(c1, c2, c3)


async def all_gone(*clients: Client) -> None:
    for client in clients:
        await kit.until_gone(client, kinds.PODS, "default")
        await kit.until_gone(client, kinds.POD_CHAPERONS, "default")


async def send(c1: Client, name: str, **fields: object) -> Object:
    """Return a pod that may travel on, running."""
    await c1.create(kinds.PODS, kit.pod(name, annotations=TRAVELS, **fields), "default")
    return await runs(c1, name)


async def runs(client: Client, name: str) -> Object:
    return await kit.until_running(client, name)


async def child(client: Client, parent: Object, kind: Kind = kinds.PODS) -> Object:
    """Return what was made of a pod in the next cluster."""
    selector = f"{keys.PARENT_UID}={objects.uid(parent)}"
    found = await kit.until(
        client,
        kind,
        lambda all_: len(all_) == 1,
        namespace="default",
        label_selector=selector,
    )
    return next(iter(found.values()))


def unscheduled(*words: str) -> Callable[[Object], bool]:
    """Return a predicate: whether a pod is pending for reasons in which all these words are."""

    def holds(pod: Object) -> bool:
        message = (objects.condition(pod, "PodScheduled") or {}).get("message", "")
        return all(word in message for word in words)

    return holds


async def cordon(client: Client, node: str, *, on: bool = True) -> None:
    await client.patch(kinds.NODES, node, {"spec": {"unschedulable": on or None}})


async def test_a_pod_runs_in_the_leaf_and_its_logs_and_exec_pass_through_the_middle(
    fleet: Fleet, c1: Client, c2: Client, c3: Client
) -> None:
    pod = await send(c1, "traveller")
    middle = await child(c2, pod)
    leaf = await child(c3, middle)
    assert objects.spec(middle)["nodeName"] == LEAF_NODE
    assert objects.spec(leaf)["nodeName"] == "c3-node-0"
    assert objects.labels(leaf)[keys.PREFIX + "app"] == "traveller"
    assert objects.labels(leaf)[keys.PARENT_CLUSTER_NAME] == "c2"
    assert objects.status(pod)["podIP"] == objects.status(leaf)["podIP"]

    chaperon = await child(c2, pod, kinds.POD_CHAPERONS)
    assert permissions.is_allowed(chaperon)
    assert "hello from a pod in c3" in fleet.kubectl("c1", "logs", "traveller")
    assert fleet.kubectl("c1", "exec", "traveller", "--", "echo", "through") == "through\n"


async def test_a_pod_that_does_not_ask_for_it_is_not_sent_on(c1: Client, c2: Client) -> None:
    # Not even if it tolerates every taint, and the middle elects all pods of its namespace.
    elected = {"metadata": {"annotations": {keys.ELECT: ""}}}
    await c2.patch(kinds.NAMESPACES, "default", elected)
    pod = kit.pod("settled", tolerations=[{"operator": "Exists"}])
    await c1.create(kinds.PODS, pod, "default")
    middle = await child(c2, await runs(c1, "settled"))
    assert objects.spec(middle)["nodeName"] == "c2-node-0"
    elected["metadata"]["annotations"] = {keys.ELECT: None}  # type: ignore[dict-item]
    await c2.patch(kinds.NAMESPACES, "default", elected)


@pytest.mark.parametrize(
    ("cluster", "kind"),
    [
        ("c1", kinds.PODS),
        ("c2", kinds.PODS),
        ("c2", kinds.POD_CHAPERONS),
        ("c3", kinds.PODS),
        ("c3", kinds.POD_CHAPERONS),
    ],
    ids=["proxy", "middle pod", "middle chaperon", "leaf pod", "leaf chaperon"],
)
async def test_whichever_link_of_the_chain_is_deleted_nothing_is_left(
    fleet: Fleet, c1: Client, c2: Client, c3: Client, cluster: str, kind: Kind
) -> None:
    pod = await send(c1, "broken")
    middle = await child(c2, pod)
    there = {"c1": pod, "c2": middle, "c3": await child(c3, middle)}
    async with fleet.client(cluster) as client:
        await client.delete(kind, objects.name(there[cluster]), "default")

    await all_gone(c3, c2, c1)


async def test_a_proxy_is_gone_only_after_the_containers_two_clusters_away(
    c1: Client, c2: Client, c3: Client
) -> None:
    pod = await send(c1, "slow")
    middle = await child(c2, pod)
    leaf = await child(c3, middle)
    # Somebody holds the leaf's pod, as a kubelet does that has not stopped its containers.
    held = {"metadata": {"finalizers": ["example.com/still-running"]}}
    await c3.patch(kinds.PODS, objects.name(leaf), held, "default")
    await c1.delete(kinds.PODS, "slow", "default")
    await kit.until_one(c3, kinds.PODS, objects.name(leaf), "default", objects.is_terminating)
    for client, name in ((c1, "slow"), (c2, objects.name(middle))):
        assert objects.is_terminating(await client.get(kinds.PODS, name, "default"))

    free = {"metadata": {"finalizers": None}}
    await c3.patch(kinds.PODS, objects.name(leaf), free, "default")
    await all_gone(c1, c2, c3)


async def test_a_leaf_that_begins_to_end_is_told_to_the_first_cluster(
    c1: Client, c2: Client, c3: Client
) -> None:
    """An owner there replaces the pod at once, whenever the leaf is gone."""
    pod = await send(c1, "ending")
    leaf = await child(c3, await child(c2, pod))
    held = {"metadata": {"finalizers": ["example.com/still-running"]}}
    await c3.patch(kinds.PODS, objects.name(leaf), held, "default")
    await c3.delete(kinds.PODS, objects.name(leaf), "default")
    await kit.until_one(c1, kinds.PODS, "ending", "default", objects.is_terminating)
    assert await c3.get(kinds.PODS, objects.name(leaf), "default")

    free = {"metadata": {"finalizers": None}}
    await c3.patch(kinds.PODS, objects.name(leaf), free, "default")
    await all_gone(c1, c2, c3)


async def test_a_pod_is_never_sent_where_it_came_from_and_says_so(c1: Client, c2: Client) -> None:
    await cordon(c2, LEAF_NODE)
    await c1.create(kinds.PODS, kit.pod("waiting", annotations=TRAVELS), "default")
    expected = unscheduled("c2: 0/2 targets", "c1: the pod came through that cluster", "c3: ")
    await kit.until_one(c1, kinds.PODS, "waiting", "default", expected)
    assert await c1.list(kinds.POD_CHAPERONS, "default") == []
    await cordon(c2, LEAF_NODE, on=False)
    middle = await child(c2, await runs(c1, "waiting"))
    assert objects.spec(middle)["nodeName"] == LEAF_NODE


async def test_a_leaf_without_room_says_so_in_the_first_cluster(c1: Client) -> None:
    pod = kit.pod("large", annotations=TRAVELS)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    await c1.create(kinds.PODS, pod, "default")
    expected = unscheduled("c2: 0/2 targets", "c3: 0/1 nodes are available", "Insufficient cpu")
    await kit.until_one(c1, kinds.PODS, "large", "default", expected)


async def test_a_middle_that_is_its_own_target_may_keep_the_pod(
    fleet: Fleet, c1: Client, c2: Client
) -> None:
    with fleet.self_targets("c2"):
        config = ("--source", fleet.kubeconfig("c2"), "--target", fleet.kubeconfig("c2"))
        done = vnode(
            "connect", *config, "--cluster-name", "c2", "--namespace", "default", "--name", "here"
        )
        assert not done.code, done.err
        await kit.until_one(c2, kinds.TARGETS, "here", "default", own.is_because("Connected"))
        await cordon(c2, LEAF_NODE)
        first = await child(c2, await send(c1, "homely"))
        second = await child(c2, first)
        assert objects.spec(second)["nodeName"] == "c2-node-0"
        assert "hello from a pod in c2" in fleet.kubectl("c1", "logs", "homely")
        await c1.delete(kinds.PODS, "homely", "default")
        await all_gone(c1, c2)
        await cordon(c2, LEAF_NODE, on=False)
        await c2.delete(kinds.TARGETS, "here", "default")
        node = f"metadata.name={names.virtual_node('default', 'here')}"
        await kit.until_gone(c2, kinds.NODES, field_selector=node)


async def test_what_a_pod_refers_to_follows_it_through_the_middle(
    c1: Client, c2: Client, c3: Client
) -> None:
    settings = {"metadata": {"name": "settings"}, "data": {"colour": "red"}}
    await c1.create(kinds.CONFIG_MAPS, settings, "default")
    pod = kit.pod("reader", annotations=TRAVELS)
    pod["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    await c1.create(kinds.PODS, pod, "default")
    await runs(c1, "reader")
    for client in (c2, c3):
        copy = await client.get(kinds.CONFIG_MAPS, "settings", "default")
        assert copy["data"] == {"colour": "red"}

    await c1.patch(kinds.CONFIG_MAPS, "settings", {"data": {"colour": "blue"}}, "default")
    await kit.until_one(
        c3, kinds.CONFIG_MAPS, "settings", "default", lambda c: c["data"] == {"colour": "blue"}
    )
    await c1.delete(kinds.PODS, "reader", "default")
    for client in (c2, c3):
        await kit.until_gone(
            client, kinds.CONFIG_MAPS, "default", field_selector="metadata.name=settings"
        )

    await c1.delete(kinds.CONFIG_MAPS, "settings", "default")


async def test_changes_go_down_the_chain_and_annotations_come_up(
    c1: Client, c2: Client, c3: Client
) -> None:
    leaf = await child(c3, await child(c2, await send(c1, "changing")))
    news = {"metadata": {"labels": {"tier": "gold"}, "annotations": {"example.com/a": "down"}}}
    await c1.patch(kinds.PODS, "changing", news, "default")
    found = await kit.until_one(
        c3,
        kinds.PODS,
        objects.name(leaf),
        "default",
        lambda pod: objects.annotations(pod).get("example.com/a") == "down",
    )
    assert objects.labels(found)[keys.PREFIX + "tier"] == "gold"
    note = {"metadata": {"annotations": {"example.com/b": "up"}}}
    await c3.patch(kinds.PODS, objects.name(leaf), note, "default")
    await kit.until_one(
        c1,
        kinds.PODS,
        "changing",
        "default",
        lambda pod: objects.annotations(pod).get("example.com/b") == "up",
    )


async def test_many_at_once_each_run_once(c1: Client, c2: Client, c3: Client) -> None:
    count = 20
    template = kit.pod("crowd", annotations=TRAVELS)
    await c1.create(kinds.DEPLOYMENTS, kit.deployment("crowd", count, template), "default")
    for client in (c1, c2, c3):
        await kit.until(
            client,
            kinds.PODS,
            lambda all_: kit.running(all_, count),
            namespace="default",
        )

    await c1.delete(kinds.DEPLOYMENTS, "crowd", "default", propagation="Background")
    await all_gone(c1, c2, c3)


async def test_a_middle_without_its_agent_ends_the_pod_when_it_is_back(
    fleet: Fleet, c1: Client, c2: Client, c3: Client
) -> None:
    await send(c1, "orphan")
    await asyncio.to_thread(fleet.run, "stop", "c2", "agent")
    await c1.delete(kinds.PODS, "orphan", "default")
    for client in (c2, c3):  # nobody tells them yet
        (pod,) = await client.list(kinds.PODS, "default")
        assert kit.phase(pod) == "Running"

    await asyncio.to_thread(fleet.run, "start", "c2", "agent")
    await all_gone(c1, c2, c3)


async def test_a_delegate_that_somebody_bound_to_a_virtual_node_says_why_it_stays(
    c2: Client, c3: Client
) -> None:
    chaperon = {
        "apiVersion": kinds.POD_CHAPERONS.api_version,
        "kind": kinds.POD_CHAPERONS.kind,
        "metadata": {
            "name": "smuggled",
            "labels": {keys.PARENT_UID: "u", keys.PARENT_CLUSTER_NAME: "elsewhere"},
            "annotations": {keys.FORWARD: "", keys.IS_ALLOWED: "true"},
        },
        "spec": {**kit.pod("smuggled")["spec"], "nodeName": LEAF_NODE, "schedulerName": "mine"},
    }
    await c2.create(kinds.POD_CHAPERONS, chaperon, "default")
    expected = await kit.until_one(
        c2,
        kinds.POD_CHAPERONS,
        "smuggled",
        "default",
        lambda obj: objects.status(obj).get("reason") == "NotSentOn",
    )
    assert "vnode did not choose its virtual node" in objects.status(expected)["message"]
    assert await c3.list(kinds.PODS, "default") == []
    await c2.delete(kinds.POD_CHAPERONS, "smuggled", "default")
    await all_gone(c2)
