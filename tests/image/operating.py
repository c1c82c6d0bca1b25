"""What an operator does with the chart: helm, and looks at its pods."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests import kit
from tests.chart.helm import CHART, helm
from tests.kit import Fleet
from tests.realnode.cluster import SOURCE, TARGET, NodeCluster

NAMESPACE: Final = "vnode"
DEPLOYMENTS: Final = ("vnode-agent", "vnode-candidate-scheduler")
VIRTUAL_NODES: Final = ("-l", "virtual-kubelet.io/provider=admiralty")


def release(fleet: Fleet, cluster: str, *words: str | Path) -> str:
    """Run `helm WORDS` in a cluster, and return what it prints."""
    where = ("--kubeconfig", fleet.kubeconfig(cluster), "--namespace", NAMESPACE)
    return helm(*words, *where)


def install(fleet: Fleet, *values: str) -> None:
    """Install a release in each cluster, with the chart's defaults and `values` (NAME=VALUE).

    Upgrade it where it is installed. Return when all of its pods are ready.
    """
    with ThreadPoolExecutor() as both:
        list(both.map(lambda name: _install(fleet, name, values), (SOURCE, TARGET)))


def _install(fleet: Fleet, cluster: str, values: tuple[str, ...]) -> None:
    words = ("upgrade", "--install", "vnode", CHART, "--create-namespace", "--wait", kit.TIMEOUT)
    chosen = [word for value in (f"clusterName={cluster}", *values) for word in ("--set", value)]
    release(fleet, cluster, *words, *chosen)


def in_agent(cluster: NodeCluster, *command: str) -> str:
    """Return what a command prints in a container of an agent; AssertionError if it fails."""
    return cluster.ask("exec", "-n", NAMESPACE, "deploy/vnode-agent", "--", *command)


def pods(cluster: NodeCluster, component: str) -> dict[str, Any]:
    """Return the pods of one Deployment, by name."""
    selector = f"app.kubernetes.io/component={component}"
    found = cluster.get("pods", "-n", NAMESPACE, "-l", selector)["items"]
    return {pod["metadata"]["name"]: pod for pod in found}


def leader(cluster: NodeCluster, lease: str) -> str:
    """Return the name of the pod that holds a lease."""
    holder = cluster.get("lease", "-n", NAMESPACE, lease)["spec"]["holderIdentity"]
    return str(holder).partition("_")[0]
