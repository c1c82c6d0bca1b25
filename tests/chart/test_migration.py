"""From Admiralty to vnode and back, as docs/migration-from-admiralty.md says, under pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import admiralty_webhook, kit
from tests.chart import admiralty, releases, way_back
from tests.chart.kubelet import Kubelet, kubelet
from tests.chart.releases import AGENT, SCHEDULER
from tests.fleets import SOURCE, TARGET, vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects

NOTE = "example.com/note"
PREFIX = admiralty.PREFIX
FOLLOWED: dict[Kind, Object] = {
    kinds.CONFIG_MAPS: {},
    kinds.SECRETS: {},
    kinds.SERVICES: {"spec": {"selector": {"app": "old"}, "ports": [{"port": 80}]}},
    kinds.INGRESSES: {
        "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 1}}}}
    },
}
"""What Admiralty copies, and has a finalizer on."""


@pytest.fixture(scope="module")
def migrated(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Return the module's fleet, with what Admiralty leaves."""
    chart = admiralty.chart(tmp_path_factory.mktemp("chart"))
    for cluster in (SOURCE, TARGET):
        admiralty.install(fleet.kubeconfig(cluster), chart)

    fleet.opt_in(SOURCE)
    return fleet


async def test_vnode_takes_over_what_admiralty_leaves(migrated: Fleet, tmp_path: Path) -> None:
    async with (
        kubelet(migrated, SOURCE, tmp_path / "pods") as c1,
        kubelet(migrated, TARGET, tmp_path / "pods") as c2,
    ):
        stop_admiralty(c1)
        proxy = await admiralty_pod(c1, c2)
        waiting = await waiting_pods(c1)
        await what_followed(c1)
        delegate = await releases.delegate_of(c2.client, objects.uid(proxy))
        await refuse_without_ownership(c1)
        node = await c1.client.get(kinds.NODES, admiralty.NODE)
        for machine in (c2, c1):
            switch(machine)

        await releases.play(c2, AGENT, SCHEDULER)
        await releases.play(c1, AGENT)
        await releases.delegate(c1.client, c2.client, "new")
        await the_pod_runs_on(c1, c2, proxy, delegate)
        await they_wait_and_say_why(c1, c2, waiting)
        done = vnode("migrate", "--kubeconfig", migrated.kubeconfig(SOURCE))
        assert done.code == 0, done.out + done.err
        await they_run_as_their_users_wrote_them(c1, c2, waiting)
        await nothing_that_followed_hangs(c1)
        taken = await c1.client.get(kinds.NODES, admiralty.NODE)
        assert objects.uid(taken) == objects.uid(node)
        await deletion_reaches_the_delegate(c1, c2, proxy)
        await way_back.walk(c1, c2)


async def admiralty_pod(c1: Kubelet, c2: Kubelet) -> Object:
    await admiralty.relate(c1.client, c2.client, c2.fleet.kubeconfig(TARGET))
    proxy = await admiralty.proxy(c1.client, "old")
    await admiralty.chaperon(c2.client, proxy)
    return proxy


async def waiting_pods(c1: Kubelet) -> Objects:
    """Create pods that Admiralty admitted and has found no place for."""
    own: dict[str, Object] = {
        "nowhere": {"nodeSelector": {"nope": "x"}},
        "slow": {"terminationGracePeriodSeconds": 120},
        "by-itself": {"schedulerName": "default-scheduler"},
    }
    made = []
    for name, spec in own.items():
        notes = {PREFIX + "elect": ""}
        if name == "by-itself":
            notes[PREFIX + "no-reservation"] = ""

        pod = kit.pod(name, annotations=notes, **spec)
        admitted = admiralty_webhook.admitted(pod, [admiralty.FINALIZER])
        made.append(await c1.client.create(kinds.PODS, admitted, "default"))

    return made


async def what_followed(c1: Kubelet) -> None:
    """Create objects of each kind that Admiralty copies, with its finalizer."""
    held = {"finalizers": [admiralty.FINALIZER], "labels": {PREFIX + "has-finalizer": "true"}}
    for kind, more in FOLLOWED.items():
        await c1.client.create(kind, {"metadata": {"name": "followed", **held}, **more}, "default")


async def nothing_that_followed_hangs(c1: Kubelet) -> None:
    for kind in FOLLOWED:
        await c1.client.delete(kind, "followed", "default")
        await kit.until_gone(c1.client, kind, "default", field_selector="metadata.name=followed")


async def they_wait_and_say_why(c1: Kubelet, c2: Kubelet, waiting: Objects) -> None:
    for pod in waiting:
        await kit.until_one(
            c1.client,
            kinds.PODS,
            objects.name(pod),
            "default",
            lambda now: "run vnode migrate" in str(objects.condition(now, "PodScheduled")),
        )
        selector = f"{PREFIX}parent-uid={objects.uid(pod)}"
        assert not await c2.client.list(kinds.POD_CHAPERONS, "default", label_selector=selector)


async def they_run_as_their_users_wrote_them(c1: Kubelet, c2: Kubelet, waiting: Objects) -> None:
    nowhere, slow, by_itself = waiting
    await kit.until_one(
        c1.client,
        kinds.PODS,
        objects.name(nowhere),
        "default",
        lambda now: "node affinity/selector" in str(objects.condition(now, "PodScheduled")),
    )
    assert (await releases.delegate_of(c2.client, objects.uid(slow)))["spec"][
        "terminationGracePeriodSeconds"
    ] == 120
    delegate = await releases.delegate_of(c2.client, objects.uid(by_itself))
    assert objects.spec(delegate)["schedulerName"] == "default-scheduler"
    for pod in waiting:
        await c1.client.delete(kinds.PODS, objects.name(pod), "default", grace=1)
        name = f"metadata.name={objects.name(pod)}"
        await kit.until_gone(c1.client, kinds.PODS, "default", field_selector=name)


async def refuse_without_ownership(machine: Kubelet) -> None:
    """Check that Helm lets no release take the objects of another, unless it is told to."""
    with pytest.raises(AssertionError, match="invalid ownership metadata"):
        releases.install(machine)

    assert await machine.client.get(kinds.CRDS, kinds.TARGETS.resource)


def stop_admiralty(machine: Kubelet) -> None:
    """Delete Admiralty's webhook configuration: the service that it names no longer answers."""
    words = ("delete", "mutatingwebhookconfiguration", "admiralty")
    machine.fleet.kubectl(machine.cluster, *words)


def switch(machine: Kubelet) -> None:
    """Install vnode over Admiralty, then let Helm forget Admiralty's release, as the page says."""
    releases.install(machine, "--take-ownership")
    words = ("delete", "secret", "-l", "owner=helm,name=admiralty", "-n", admiralty.NAMESPACE)
    output = machine.fleet.kubectl(machine.cluster, *words)
    assert "sh.helm.release.v1.admiralty.v1" in output
    machine.fleet.kubectl(machine.cluster, "delete", "namespace", admiralty.NAMESPACE)


async def the_pod_runs_on(c1: Kubelet, c2: Kubelet, proxy: Object, delegate: Object) -> None:
    """Check that the delegate is the same and its changes reach the proxy that Admiralty made."""
    body = {"metadata": {"annotations": {NOTE: "from c2"}}}
    await c2.client.patch(kinds.PODS, objects.name(delegate), body, "default")
    target = await kit.until_one(
        c1.client,
        kinds.PODS,
        "old",
        "default",
        lambda pod: objects.annotations(pod).get(NOTE) == "from c2",
    )
    assert objects.uid(target) == objects.uid(proxy)
    assert kit.phase(target) == "Running"
    now = await c2.client.get(kinds.PODS, objects.name(delegate), "default")
    assert objects.uid(now) == objects.uid(delegate)


async def deletion_reaches_the_delegate(c1: Kubelet, c2: Kubelet, proxy: Object) -> None:
    await c1.client.delete(kinds.PODS, "old", "default")
    selector = f"{admiralty.PREFIX}parent-uid={objects.uid(proxy)}"
    await kit.until_gone(c1.client, kinds.PODS, "default", field_selector="metadata.name=old")
    await kit.until_gone(c2.client, kinds.PODS, "default", label_selector=selector)
    await kit.until_gone(c2.client, kinds.POD_CHAPERONS, "default", label_selector=selector)
