"""`vnode disconnect` where several Targets lead to one cluster; neither side has an agent."""

from __future__ import annotations

import base64
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from tests.fleets import SOURCE, TARGET, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.cli import identity
from vnode.kube.client import Client
from vnode.runtime.leader import AGENT_LEASE


@dataclass(frozen=True)
class Pair:
    """c1 as source and c2 as target; two namespaces that both have, and what c1 is called."""

    fleet: Fleet
    source: Client
    target: Client
    namespace: str
    another: str
    me: Identity

    async def make_target(self, name: str, *, everywhere: bool = False) -> None:
        """Create a Target in the first namespace, or a ClusterTarget, that leads to c2."""
        reference = {"name": "kubeconfig"}
        kind, namespace = kinds.TARGETS, self.namespace
        if everywhere:
            reference["namespace"], kind, namespace = self.namespace, kinds.CLUSTER_TARGETS, ""

        body = {"metadata": {"name": name}, "spec": {"kubeconfigSecret": reference}}
        await self.source.create(kind, body, namespace or None)

    async def send(self, name: str, target: str, namespace: str, *, held: bool = False) -> Object:
        """Create a ConfigMap that followed a pod, and the pod's chaperon; return the chaperon.

        The pod came by a Target.
        """
        annotations = {keys.PARENT_CLUSTER_UID: self.me.uid}
        labels = {keys.PARENT_CLUSTER_NAME: self.me.name}
        copy = {"metadata": {"name": name, "labels": labels, "annotations": annotations}}
        await self.target.create(kinds.CONFIG_MAPS, copy, namespace)
        chaperon = {
            "metadata": {
                "name": names.chaperon(name, name),
                "labels": {**labels, keys.PARENT_UID: name},
                "annotations": {
                    **annotations,
                    keys.TARGET: target,
                    keys.PARENT_NAMESPACE: namespace,
                    keys.PARENT_NAME: name,
                },
                "finalizers": [keys.DELEGATE_FINALIZER] if held else [],
            },
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        }
        return await self.target.create(kinds.POD_CHAPERONS, chaperon, namespace)

    def disconnect(self, name: str, *words: str, seconds: int = 30) -> str:
        """Return what the command says."""
        files = ("--source", self.fleet.kubeconfig(SOURCE))
        done = vnode("disconnect", name, *files, "--timeout", str(seconds), *words)
        assert done.code == 0, done.err
        return done.out

    async def left(self, namespace: str) -> tuple[list[str], list[str]]:
        """Return the names of pods whose chaperons stay in the target, and of copies that do."""
        chaperons = await self.target.list(kinds.POD_CHAPERONS, namespace)
        copies = await self.target.list(
            kinds.CONFIG_MAPS, namespace, label_selector=self.me.selector
        )
        assert not any(map(objects.is_terminating, chaperons))
        pods = [objects.annotations(obj)[keys.PARENT_NAME] for obj in chaperons]
        return pods, [objects.name(obj) for obj in copies]


async def release(target: Client, chaperon: Object) -> None:
    """Take off a chaperon's finalizers, as the target's agent does when the delegate has ended."""
    name, namespace = objects.name(chaperon), objects.namespace(chaperon)
    free = {"metadata": {"finalizers": None}}
    await target.patch(kinds.POD_CHAPERONS, name, free, namespace)


@pytest.fixture(scope="module")
def installed(fleet: Fleet) -> Fleet:
    """Return a fleet in which both clusters have the kinds."""
    done = vnode("install", "--kubeconfig", fleet.kubeconfig(TARGET))
    assert done.code == 0, done.err
    return fleet


@pytest.fixture
async def pair(installed: Fleet) -> AsyncIterator[Pair]:
    """Yield both clusters, and the Secret by which the source's Targets reach the other."""
    kubeconfig = base64.b64encode(installed.kubeconfig(TARGET).read_bytes()).decode()
    async with installed.client(SOURCE) as source, installed.client(TARGET) as target:
        first, second = names = [f"test-{uuid.uuid4().hex[:10]}" for _ in range(2)]
        for name in names:
            for client in (source, target):
                await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})

        secret = {"metadata": {"name": "kubeconfig"}, "data": {"config": kubeconfig}}
        await source.create(kinds.SECRETS, secret, first)
        yield Pair(installed, source, target, first, second, await identity.identity(source))
        for name in names:
            for chaperon in await target.list(kinds.POD_CHAPERONS, name):
                await release(target, chaperon)
                await target.discard(kinds.POD_CHAPERONS, chaperon)


async def test_delegates_of_another_target_to_the_same_cluster_run_on(pair: Pair) -> None:
    for name in ("east", "west"):
        await pair.make_target(name)
        await pair.send(f"of-{name}", f"{pair.namespace}/{name}", pair.namespace)

    output = pair.disconnect("east", "--namespace", pair.namespace)
    assert "deleted 1 of 1 PodChaperons" in output
    assert "1 delegate pod kept, sent through other Targets of this cluster" in output
    assert await pair.left(pair.namespace) == (["of-west"], ["of-east", "of-west"])

    output = pair.disconnect("west", "--namespace", pair.namespace)
    assert "other Targets" not in output
    assert await pair.left(pair.namespace) == ([], [])


async def test_what_followed_pods_goes_from_namespaces_where_no_other_target_has_any(
    pair: Pair,
) -> None:
    everywhere = pair.another
    await pair.make_target(everywhere, everywhere=True)
    await pair.make_target("west")
    await pair.send("wide", everywhere, pair.namespace)
    await pair.send("narrow", f"{pair.namespace}/west", pair.namespace)
    await pair.send("alone", everywhere, pair.another)

    assert "deleted 2 of 2 PodChaperons" in pair.disconnect(everywhere)
    assert await pair.left(pair.namespace) == (["narrow"], ["narrow", "wide"])
    assert await pair.left(pair.another) == ([], [])


async def test_what_an_agent_has_to_leave_is_told_from_what_another_target_runs(
    pair: Pair,
) -> None:
    now = objects.timestamp(datetime.now(UTC)).replace("Z", ".000000Z")
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 60, "renewTime": now}
    lease = {"metadata": {"name": AGENT_LEASE}, "spec": spec}
    await pair.source.create(kinds.LEASES, lease, pair.namespace)
    for name in ("east", "west"):
        await pair.make_target(name)

    await pair.send("of-west", f"{pair.namespace}/west", pair.namespace)
    words = ("--namespace", pair.namespace, "--agent-namespace", pair.namespace)
    output = pair.disconnect("east", *words)
    assert "not terminated" not in output
    assert await pair.left(pair.namespace) == (["of-west"], ["of-west"])

    output = pair.disconnect("west", *words)
    assert "1 delegate pod not terminated" in output
    assert await pair.left(pair.namespace) == (["of-west"], ["of-west"])


async def test_the_command_that_ends_the_rest_names_the_namespace_of_the_target(
    pair: Pair,
) -> None:
    await pair.make_target("east")
    held = await pair.send("held", f"{pair.namespace}/east", pair.namespace, held=True)
    output = pair.disconnect("east", "--namespace", pair.namespace, seconds=1)
    assert f"kubectl delete podchaperons -n {pair.namespace} -l {pair.me.selector}\n" in output
    await release(pair.target, held)

    await pair.make_target(pair.another, everywhere=True)
    await pair.send("wide", pair.another, pair.namespace, held=True)
    output = pair.disconnect(pair.another, seconds=1)
    assert f"kubectl delete podchaperons -A -l {pair.me.selector}\n" in output
