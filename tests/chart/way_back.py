"""From vnode back to Admiralty, in a source and its target: the part of the page "Going back".

Admiralty is played by its words on the wire: it deletes the chaperon of a pod that is deleted, with
which Kubernetes deletes the delegate, and then takes its finalizer off the pod.
"""

from __future__ import annotations

from tests import kit
from tests.chart import admiralty, releases
from tests.chart.kubelet import Kubelet
from tests.fleets import vnode
from vnode.api import kinds, objects
from vnode.api.objects import Object

_GRACE = 3  # seconds of the pods


async def walk(c1: Kubelet, c2: Kubelet) -> None:
    """Go back with the target first, and see the last pod that vnode admitted to its end."""
    await c1.client.delete(kinds.PODS, "new", "default", grace=0)
    await kit.until_gone(c1.client, kinds.PODS, "default")
    proxy = await _pod(c1, "stays")
    delegate = await releases.delegate_of(c2.client, objects.uid(proxy))
    for machine in (c2, c1):
        await _leave(machine)

    now = await c2.client.get(kinds.PODS, objects.name(delegate), "default")
    assert objects.uid(now) == objects.uid(delegate)
    assert kit.phase(now) == "Running"
    summary = await c2.client.get(kinds.CLUSTER_SUMMARIES, "singleton")
    left = {key for key in objects.annotations(summary) if key.startswith("vnode.dev/")}
    assert left == {"vnode.dev/cluster-uid", "vnode.dev/cluster-name"}
    await c1.client.delete(kinds.PODS, "stays", "default")
    await _end_as_admiralty(c1, c2, delegate)
    assert await c1.client.get(kinds.PODS, "stays", "default")  # nobody else would delete it
    _migrate_back(c1, "--watch")  # ends with the last pod of vnode's
    await kit.until_gone(c1.client, kinds.PODS, "default", field_selector="metadata.name=stays")


async def _pod(c1: Kubelet, name: str) -> Object:
    pod = kit.pod(name, terminationGracePeriodSeconds=_GRACE)
    await c1.client.create(kinds.PODS, pod, "default")
    return await kit.until_running(c1.client, name)


async def _leave(machine: Kubelet) -> None:
    """Stop the agents, so that they give their Lease up; uninstall, and prepare the cluster."""
    for name in list(machine.pods):
        await machine.stop(name)

    releases.run(machine, "uninstall", "vnode")

    said = _migrate_back(machine)
    assert "clustersummary/singleton no longer says that vnode runs here" in said
    for role in admiralty.roles():  # as Admiralty's chart installs them again
        await machine.client.create(kinds.CLUSTER_ROLES, role)


def _migrate_back(machine: Kubelet, *words: str) -> str:
    config = machine.fleet.kubeconfig(machine.cluster)
    done = vnode("migrate", "--back", "--kubeconfig", config, *words)
    assert done.code == 0, done.out + done.err
    return done.out


async def _end_as_admiralty(c1: Kubelet, c2: Kubelet, delegate: Object) -> None:
    name = objects.name(delegate)
    await c2.client.delete(kinds.POD_CHAPERONS, name, "default")
    for kind in (kinds.POD_CHAPERONS, kinds.PODS):
        await kit.until_gone(c2.client, kind, "default", field_selector=f"metadata.name={name}")

    ending = await c1.client.get(kinds.PODS, "stays", "default")
    kept = objects.finalizers_without(ending, admiralty.FINALIZER)
    body = {"metadata": {"finalizers": kept}}
    await c1.client.patch(kinds.PODS, "stays", body, "default")
