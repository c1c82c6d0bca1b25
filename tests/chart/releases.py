"""Releases of the chart in the clusters of a fleet, with their pods played."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import yaml

from tests import kit
from tests.chart import kubelet
from tests.chart.helm import CHART, helm
from tests.chart.kubelet import Kubelet
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

NAMESPACE = "vnode"
AGENT, SCHEDULER = "vnode-agent", "vnode-candidate-scheduler"

# No node of a fleet runs them: the kubelet that we play does.
_NOWHERE = {"nodeSelector": {"vnode.dev/nowhere": "true"}}


def values(machine: Kubelet, **agent: object) -> Object:
    """Return the chart's values for a cluster of a fleet; `agent` is the agent's configuration."""
    found: Object = {
        "clusterName": machine.cluster,
        "controllerManager": {**_NOWHERE, "config": agent},
        "scheduler": {**_NOWHERE, "config": {"leaderElection": {"leaderElect": False}}},
    }
    if ipaddress.ip_address(machine.address).is_loopback:
        found["webhook"] = {"url": f"https://{machine.address}:9443"}  # no endpoint may be loopback

    return found


def run(machine: Kubelet, *words: str | Path, values: Object | None = None) -> str:
    """Run helm against the cluster of that machine; return what helm prints."""
    config = machine.fleet.kubeconfig(machine.cluster)
    return helm(*words, "--kubeconfig", config, "--namespace", NAMESPACE, values=values)


def install(machine: Kubelet, *words: str, **agent: object) -> str:
    """Install the release `vnode`; what helm prints."""
    wanted = values(machine, **agent)
    return run(machine, "install", "vnode", CHART, "--create-namespace", *words, values=wanted)


async def play(machine: Kubelet, *names: str) -> None:
    """Run these Deployments, and let the API server find the webhook."""
    if not ipaddress.ip_address(machine.address).is_loopback:
        slice_ = kubelet.endpoints(machine.address, NAMESPACE)
        words = ("apply", "-f", "-")
        machine.fleet.kubectl(machine.cluster, *words, input=yaml.safe_dump(slice_))

    for name in names:
        await machine.start(name)


def connect(fleet: Fleet, source: str, target: str) -> None:
    """Connect the source to the target, so that pods of namespace default may go there."""
    done = vnode(
        "connect",
        *("--source", fleet.kubeconfig(source), "--target", fleet.kubeconfig(target)),
        *("--namespace", "default", "--name", target, "--enable-namespace"),
    )
    assert done.code == 0, done.err


async def delegate(source: Client, target: Client, name: str) -> Object:
    """Create an elected pod, and wait until both halves of it run; the delegate."""
    created = await source.create(kinds.PODS, kit.pod(name), "default")
    await kit.until_running(source, name)
    return await delegate_of(target, objects.uid(created))


async def delegate_of(target: Client, uid: str) -> Object:
    """Return the delegate of a proxy pod, running."""
    selector = f"multicluster.admiralty.io/parent-uid={uid}"
    found = await kit.until(
        target,
        kinds.PODS,
        lambda pods: kit.running(pods, 1),
        namespace="default",
        label_selector=selector,
    )
    return next(iter(found.values()))
