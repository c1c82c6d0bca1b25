"""A Target's Secret comes to hold another cluster's kubeconfig: by a slip, or because it is meant.

The Target `bad` of a namespace that all clusters have is c2, until its Secret leads to c3.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, others_are_unaffected, shared
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["home", "others_are_unaffected", "shared"]

pytestmark = pytest.mark.usefixtures("others_are_unaffected")

STATEFUL_SETS = Kind("apps", "v1", "statefulsets", "StatefulSet", namespaced=True)


async def cluster_uid(client: Client) -> str:
    return objects.uid(await client.get(kinds.NAMESPACES, "kube-system"))


def stateful(name: str) -> Object:
    """Return two pods that may go to the Target `bad` alone."""
    only = {keys.PROXY_CONSTRAINTS: f"nodeSelector: {{{keys.TARGET_NAME}: bad}}"}
    pod = kit.pod(name, annotations={keys.ELECT: "", **only})
    labels = {"set": name}
    template = {
        "metadata": {**pod["metadata"], "labels": labels},
        "spec": {**pod["spec"], "restartPolicy": "Always"},
    }
    template["metadata"].pop("name", None)
    spec = {
        "replicas": 2,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": template,
    }
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def running(
    source: Client, c2: Client, c3: Client, shared: str, fleet: Fleet
) -> AsyncIterator[dict[str, str]]:
    """Yield the UIDs, by key, of the pods of a StatefulSet, which run in c2."""
    await own.put_secret(source, shared, own.admin(fleet, "c2"))
    await own.put_target(source, shared, own.named())
    await own.assert_connects(source, shared)
    name = f"sw-{uuid.uuid4().hex[:6]}"
    await source.create(STATEFUL_SETS, stateful(name), shared)
    yield await until_run(source, shared)
    await source.delete(STATEFUL_SETS, name, shared, propagation="Background")
    await kit.until_gone(source, kinds.PODS, shared)
    for client in (c2, c3):
        await kit.until_gone(client, kinds.POD_CHAPERONS, shared)


async def until_run(
    source: Client, namespace: str, *, but: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return the UIDs of two pods that run, none of which is one of those."""

    def there(pods: dict[str, Object]) -> bool:
        return [kit.phase(pod) for pod in pods.values()] == ["Running"] * 2 and not (
            but & {objects.uid(pod) for pod in pods.values()}
        )

    found = await kit.until(source, kinds.PODS, there, namespace=namespace)
    return {key: objects.uid(pod) for key, pod in found.items()}


async def until_it_is_another_cluster(source: Client, namespace: str) -> Object:
    """Wait until the Target says so, and its node is not ready for that reason."""
    other = own.is_because("OtherCluster")
    found = await kit.until_one(source, kinds.TARGETS, "bad", namespace, other)
    node = names.virtual_node(namespace, "bad")
    await kit.until_one(
        source,
        kinds.NODES,
        node,
        "",
        lambda n: (
            (ready := objects.condition(n, "Ready") or {}).get("status") == "False"
            and ready.get("reason") == "OtherCluster"
        ),
    )
    return found


async def assert_untouched(
    source: Client, c3: Client, namespace: str, running: dict[str, str]
) -> None:
    """Assert that a new pod is told why it waits, the old ones run on, and c3 has nothing."""
    late = kit.pod("late", annotations={keys.ELECT: "", keys.NO_RESERVATION: ""})
    await source.create(kinds.PODS, late, namespace)
    await kit.until_one(
        source,
        kinds.PODS,
        "late",
        namespace,
        lambda pod: (
            "another cluster answers"
            in str((objects.condition(pod, "PodScheduled") or {}).get("message"))
        ),
    )
    await source.delete(kinds.PODS, "late", namespace)
    await kit.until_gone(source, kinds.PODS, namespace, field_selector="metadata.name=late")
    pods = await source.list(kinds.PODS, namespace)
    assert {objects.key(pod): objects.uid(pod) for pod in pods} == running
    assert not any(objects.is_terminating(pod) for pod in pods)
    for kind in (kinds.POD_CHAPERONS, kinds.PODS):
        assert await c3.list(kind, namespace) == []


async def test_a_slip_harms_nothing_and_is_undone_by_putting_the_secret_back(
    source: Client, c2: Client, c3: Client, shared: str, fleet: Fleet, running: dict[str, str]
) -> None:
    target = await kit.until_one(
        source, kinds.TARGETS, "bad", shared, lambda t: objects.status(t).get("clusterUID")
    )
    assert objects.status(target)["clusterUID"] == await cluster_uid(c2)
    await own.put_secret(source, shared, own.admin(fleet, "c3"))
    message = own.ready(await until_it_is_another_cluster(source, shared))["message"]
    assert f"{keys.CONFIRM_CLUSTER}={await cluster_uid(c3)}" in message
    await assert_untouched(source, c3, shared, running)

    first = min(running)
    await source.delete(kinds.PODS, objects.split_key(first)[1], shared)
    await own.put_secret(source, shared, own.admin(fleet, "c2"))
    await own.assert_connects(source, shared, seconds=own.AT_ONCE)
    now = await until_run(source, shared, but=frozenset({running[first]}))
    assert {key for key, uid in now.items() if uid == running.get(key)} == {max(running)}
    delegates = await c2.list(kinds.PODS, shared, label_selector=keys.PARENT_UID)
    parents = {objects.labels(pod)[keys.PARENT_UID] for pod in delegates}
    assert parents == set(now.values())
    assert await c3.list(kinds.POD_CHAPERONS, shared) == []


async def test_a_restarted_agent_remembers_which_cluster_a_target_is(
    source: Client, c3: Client, shared: str, fleet: Fleet, running: dict[str, str]
) -> None:
    fleet.run("stop", "c1", "agent")
    await own.put_secret(source, shared, own.admin(fleet, "c3"))
    fleet.run("start", "c1", "agent")
    await until_it_is_another_cluster(source, shared)
    await assert_untouched(source, c3, shared, running)
    await own.put_secret(source, shared, own.admin(fleet, "c2"))
    await own.assert_connects(source, shared)


async def test_a_confirmed_cluster_takes_over_and_what_stays_in_the_former_is_collected(
    source: Client, c2: Client, c3: Client, shared: str, fleet: Fleet, running: dict[str, str]
) -> None:
    refused = own.connect(fleet, shared, "c3")
    assert refused.code == 1
    assert "--confirm-cluster" in refused.err

    await own.put_secret(source, shared, own.admin(fleet, "c3"))
    await until_it_is_another_cluster(source, shared)
    there = await cluster_uid(c3)
    note = {"metadata": {"annotations": {keys.CONFIRM_CLUSTER: there}}}
    await source.patch(kinds.TARGETS, "bad", note, shared)
    await own.assert_connects(source, shared, seconds=own.AT_ONCE)
    now = await until_run(source, shared, but=frozenset(running.values()))
    target = await source.get(kinds.TARGETS, "bad", shared)
    assert objects.status(target)["clusterUID"] == there
    created = [
        event
        for event in await source.list(kinds.EVENTS, shared)
        if event.get("reason") == "SuccessfulCreate"
    ]
    assert sum(int(event.get("count") or 1) for event in created) == 2 * len(running)

    left = await c2.list(kinds.POD_CHAPERONS, shared)
    assert {objects.labels(c)[keys.PARENT_UID] for c in left} == set(running.values())
    done = own.connect(fleet, shared, "c2", "--name", "other")
    assert not done.code, done.err
    await kit.until_gone(c2, kinds.POD_CHAPERONS, shared)
    await kit.until_gone(c2, kinds.PODS, shared)
    assert await until_run(source, shared) == now
