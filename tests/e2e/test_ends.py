"""Every way in which a pod can end: nothing is left behind, and nothing comes back by mistake."""

from __future__ import annotations

import asyncio

from tests import kit
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

HOLD = "example.com/hold"


async def placed(
    source: Client, c2: Client, name: str, *, owner: bool = False, **spec: object
) -> tuple[Object, Object, Object]:
    """Return a pod that runs in c2: proxy, chaperon, delegate."""
    template = kit.pod_in("c2", name, **spec)
    if owner:
        await source.create(kinds.DEPLOYMENTS, kit.deployment(name, 1, template), "default")
    else:
        await source.create(kinds.PODS, template, "default")

    pods = await kit.until_pods(source, name, lambda all_: kit.running(all_, 1))
    proxy = next(iter(pods.values()))
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (chaperon,) = await c2.list(kinds.POD_CHAPERONS, "default", label_selector=selector)
    (delegate,) = await c2.list(kinds.PODS, "default", label_selector=selector)
    return proxy, chaperon, delegate


async def hold(c2: Client, delegate: Object) -> None:
    """Keep a delegate that is deleted later from being gone."""
    body = {"metadata": {"finalizers": [HOLD]}}
    await c2.patch(kinds.PODS, objects.name(delegate), body, "default")


async def let_go(c2: Client, delegate: Object) -> None:
    """Hold a delegate no longer."""
    body = {"metadata": {"finalizers": []}}
    await c2.patch(kinds.PODS, objects.name(delegate), body, "default")


async def assert_all_gone(source: Client, c2: Client, proxy: Object) -> None:
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    await kit.until_gone(
        source, kinds.PODS, "default", field_selector=f"metadata.name={objects.name(proxy)}"
    )
    await kit.until_gone(c2, kinds.POD_CHAPERONS, "default", label_selector=selector)
    await kit.until_gone(c2, kinds.PODS, "default", label_selector=selector)


async def test_deleting_the_proxy_ends_everything(source: Client, c2: Client) -> None:
    proxy, _chaperon, _delegate = await placed(source, c2, "end-proxy")
    await source.delete(kinds.PODS, "end-proxy", "default")
    await assert_all_gone(source, c2, proxy)


async def test_deleting_the_proxy_by_force_ends_everything(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    proxy, _chaperon, _delegate = await placed(source, c2, "end-force")
    fleet.kubectl("c1", "delete", "pod", "end-force", "--force", "--grace-period=0", "--wait=false")
    await assert_all_gone(source, c2, proxy)


async def test_the_proxy_stays_until_its_delegate_has_stopped(source: Client, c2: Client) -> None:
    proxy, chaperon, delegate = await placed(source, c2, "end-slow")
    await hold(c2, delegate)
    await source.delete(kinds.PODS, "end-slow", "default")
    await kit.until_one(c2, kinds.PODS, objects.name(delegate), "default", objects.is_terminating)
    await kit.until_one(
        c2, kinds.POD_CHAPERONS, objects.name(chaperon), "default", objects.is_terminating
    )
    assert objects.is_terminating(await source.get(kinds.PODS, "end-slow", "default"))
    await let_go(c2, delegate)
    await assert_all_gone(source, c2, proxy)


async def test_deleting_the_delegate_replaces_the_proxy(source: Client, c2: Client) -> None:
    proxy, _chaperon, delegate = await placed(source, c2, "end-delegate", owner=True)
    await c2.delete(kinds.PODS, objects.name(delegate), "default")
    await assert_all_gone(source, c2, proxy)
    pods = await kit.until_pods(source, "end-delegate", lambda all_: kit.running(all_, 1))
    assert objects.uid(next(iter(pods.values()))) != objects.uid(proxy)
    await source.delete(kinds.DEPLOYMENTS, "end-delegate", "default", propagation="Background")
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=end-delegate")


async def test_a_delegate_that_begins_to_end_is_replaced_at_once(
    source: Client, c2: Client
) -> None:
    """As on a node that is dead: its pods are Terminating until somebody removes it."""
    proxy, _chaperon, delegate = await placed(source, c2, "end-begins", owner=True)
    await hold(c2, delegate)
    await c2.delete(kinds.PODS, objects.name(delegate), "default")
    pods = await kit.until_pods(
        source,
        "end-begins",
        lambda all_: any(
            kit.phase(pod) == "Running" and not objects.is_terminating(pod)
            for pod in all_.values()
            if objects.uid(pod) != objects.uid(proxy)
        ),
    )
    assert objects.is_terminating(pods[objects.key(proxy)])
    await let_go(c2, delegate)
    await assert_all_gone(source, c2, proxy)
    await source.delete(kinds.DEPLOYMENTS, "end-begins", "default", propagation="Background")
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=end-begins")


async def test_a_job_that_waits_for_ends_replaces_a_pod_that_was_deleted(
    source: Client, c2: Client
) -> None:
    """kwok ends pods without a last status: nobody but the agent can finish the proxy."""
    pod = kit.pod_in("c2", "end-job", restartPolicy="Never")
    template = {"metadata": {**pod["metadata"], "name": ""}, "spec": pod["spec"]}
    spec = {"podReplacementPolicy": "Failed", "backoffLimit": 6, "template": template}
    await source.create(kinds.JOBS, {"metadata": {"name": "end-job"}, "spec": spec}, "default")

    async def one(*others: Object) -> Object:
        uids = {objects.uid(other) for other in others}
        pods = await kit.until_pods(
            source,
            "end-job",
            lambda all_: any(
                kit.phase(pod) == "Running" and objects.uid(pod) not in uids
                for pod in all_.values()
            ),
        )
        return next(pod for pod in pods.values() if objects.uid(pod) not in uids)

    first = await one()
    await source.discard(kinds.PODS, first)
    second = await one(first)
    evicted = {"metadata": {"name": objects.name(second)}, "apiVersion": "policy/v1"}
    await source.create(
        *(kinds.PODS, {**evicted, "kind": "Eviction"}, "default"),
        name=objects.name(second),
        subresource="eviction",
    )
    await one(first, second)
    await source.delete(kinds.JOBS, "end-job", "default", propagation="Background")
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=end-job")


async def test_deleting_the_chaperon_replaces_the_proxy(source: Client, c2: Client) -> None:
    proxy, chaperon, _delegate = await placed(source, c2, "end-chaperon", owner=True)
    await c2.delete(kinds.POD_CHAPERONS, objects.name(chaperon), "default")
    await assert_all_gone(source, c2, proxy)
    await kit.until_pods(source, "end-chaperon", lambda all_: kit.running(all_, 1))
    await source.delete(kinds.DEPLOYMENTS, "end-chaperon", "default", propagation="Background")
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=end-chaperon")


async def test_all_at_once_leaves_nothing(source: Client, c2: Client) -> None:
    proxy, chaperon, delegate = await placed(source, c2, "end-all")
    async with asyncio.TaskGroup() as group:
        group.create_task(c2.discard(kinds.PODS, delegate))
        group.create_task(c2.discard(kinds.POD_CHAPERONS, chaperon))
        group.create_task(source.discard(kinds.PODS, proxy))

    await assert_all_gone(source, c2, proxy)


async def test_a_pending_pod_is_let_go_at_once(source: Client, c2: Client, c3: Client) -> None:
    await source.create(kinds.PODS, kit.pod("end-pending", nodeSelector={"no": "no"}), "default")
    proxy = await kit.until_one(
        source,
        kinds.PODS,
        "end-pending",
        "default",
        lambda p: "0/2" in str((objects.condition(p, "PodScheduled") or {}).get("message")),
    )
    await source.delete(kinds.PODS, "end-pending", "default")
    await assert_all_gone(source, c2, proxy)
    await assert_all_gone(source, c3, proxy)


async def test_an_orphan_in_the_target_is_deleted_when_the_agent_returns(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    proxy, _chaperon, _delegate = await placed(source, c2, "end-orphan")
    fleet.run("stop", "c1", "agent", "--kill")
    await source.patch(kinds.PODS, "end-orphan", {"metadata": {"finalizers": []}}, "default")
    await source.delete(kinds.PODS, "end-orphan", "default", grace=0)
    await kit.until_gone(source, kinds.PODS, "default", label_selector="app=end-orphan")
    fleet.run("start", "c1", "agent")
    await assert_all_gone(source, c2, proxy)


async def test_another_sources_chaperon_is_left_alone(c2: Client) -> None:
    stranger = {
        "metadata": {
            "name": "stranger",
            "labels": {keys.PARENT_UID: "unknown", keys.PARENT_CLUSTER_NAME: "c1"},
            "annotations": {
                keys.PARENT_NAMESPACE: "default",
                keys.PARENT_NAME: "unknown",
                keys.PARENT_CLUSTER_UID: "another-cluster",
            },
        },
        "spec": objects.spec(kit.pod("stranger")),
    }
    await c2.create(kinds.POD_CHAPERONS, stranger, "default")
    name = names.chaperon("unknown", "unknown")
    own = {**stranger, "metadata": {**stranger["metadata"], "name": name}}
    annotations = {**objects.annotations(stranger)}
    del annotations[keys.PARENT_CLUSTER_UID]
    own["metadata"]["annotations"] = annotations
    await c2.create(kinds.POD_CHAPERONS, own, "default")
    field_selector = f"metadata.name={name}"
    await kit.until_gone(c2, kinds.POD_CHAPERONS, "default", field_selector=field_selector)
    assert not objects.is_terminating(await c2.get(kinds.POD_CHAPERONS, "stranger", "default"))
    await c2.delete(kinds.POD_CHAPERONS, "stranger", "default")
