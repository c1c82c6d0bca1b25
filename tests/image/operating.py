"""What an operator does with the chart: helm, and looks at its pods.

The chart is the checkout's, or the package among the artefacts in $VNODE_TEST_DIST.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from hack.fleetlib.tools import binaries
from tests import kit
from tests.chart.helm import CHART, helm
from tests.kit import Fleet
from tests.realnode.cluster import SOURCE, TARGET, NodeCluster
from vnode import __version__

NAMESPACE: Final = "vnode"
DEPLOYMENTS: Final = ("vnode-agent", "vnode-candidate-scheduler")
VIRTUAL_NODES: Final = ("-l", "virtual-kubelet.io/provider=admiralty")


def chart() -> Path:
    """Return the chart that is installed."""
    return dist / f"vnode-{__version__}.tgz" if (dist := _dist()) else CHART


def released_image() -> Path | None:
    """Return the archive of the image that is installed; None if it is to be built."""
    machine = binaries.system_and_machine()[1]
    return (
        dist / f"vnode-image-{__version__}-linux-{machine}.oci.tar" if (dist := _dist()) else None
    )


def _dist() -> Path | None:
    folder = os.environ.get("VNODE_TEST_DIST")
    return Path(folder) if folder else None


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
    words = ("upgrade", "--install", "vnode", chart(), "--create-namespace", "--wait", kit.TIMEOUT)
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
