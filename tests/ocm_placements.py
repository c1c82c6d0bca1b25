"""Placements of Open Cluster Management, and its own controller, which decides for them.

CRDs and program are those of its module, unmodified. Nothing else of it runs: a test writes
ManagedClusters, their taints and scores, as its registration and add-ons would. The first use on a
machine builds the program, which takes some minutes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from hack.fleetlib import processes
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.state import Process
from hack.fleetlib.tools import binaries, catalogue, gobuild
from tests import kit
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.errors import AlreadyExists
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client

PLACEMENTS: Final = Kind(kinds.OCM, "v1beta1", "placements", "Placement")
DECISIONS: Final = kinds.OCM_PLACEMENT_DECISIONS
SCORES: Final = Kind(kinds.OCM, "v1alpha1", "addonplacementscores", "AddOnPlacementScore")
_SETS: Final = Kind(kinds.OCM, "v1beta2", "managedclustersets", "ManagedClusterSet", False)
_BINDINGS: Final = Kind(
    kinds.OCM, "v1beta2", "managedclustersetbindings", "ManagedClusterSetBinding"
)
_SET: Final = "vnode"
_SCORED: Final = "usage"
"""Of AddOnPlacementScores, and of the one score in each."""
_PORT: Final = 8443
_DOMAIN: Final = kinds.OCM.partition(".")[2]


def get_program() -> Path:
    """Build the controller, if that is still to be done."""
    return binaries.locate(["placement"])["placement"]


def crds() -> Objects:
    """Return the six CRDs that the controller needs."""
    source = gobuild.source(catalogue.OPEN_CLUSTER_MANAGEMENT_MODULE)
    files = (source / "manifests/cluster-manager/hub/crds").glob(f"*_clusters.{_DOMAIN}_*")
    return [yaml.safe_load(file.read_text()) for file in sorted(files)]


async def install(client: Client, *clusters: str) -> None:
    """Install the CRDs, with ManagedClusters, and a set of them for Placements in `default`."""
    found = await asyncio.to_thread(crds)
    for crd in found:
        await client.create(kinds.CRDS, crd)

    for kind in (kinds.MANAGED_CLUSTERS, _SETS, _BINDINGS, PLACEMENTS, DECISIONS, SCORES):
        await kit.until_served(client, kind)

    for cluster in clusters:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": cluster}})
        labels = {_SET: "true"}
        member = {"metadata": {"name": cluster, "labels": labels}}
        accepted = {**member, "spec": {"hubAcceptsClient": True}}
        await client.create(kinds.MANAGED_CLUSTERS, accepted)

    selector = {"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {_SET: "true"}}}
    clusters_of_set = {"metadata": {"name": _SET}, "spec": {"clusterSelector": selector}}
    await client.create(_SETS, clusters_of_set)
    binding = {"metadata": {"name": _SET}, "spec": {"clusterSet": _SET}}
    await client.create(_BINDINGS, binding, "default")


def start(fleet: Fleet, hub: str) -> None:
    """Start the controller in a cluster that has the CRDs."""
    place = LocalFleet(fleet.folder).site(hub)
    argv = [str(get_program()), "controller", f"--kubeconfig={fleet.kubeconfig(hub)}"]
    argv += ["--namespace=default", "--disable-leader-election"]
    argv += [f"--listen={place.address}:{_PORT}"]
    definition = Process(argv, place.file("placement.log"))
    processes.start(fleet.folder, hub, "placement", definition)


async def place(client: Client, name: str, **spec: Any) -> None:
    """Make a Placement in `default`, which takes the clusters with the best scores alone."""
    scored = {"type": "AddOn", "addOn": {"resourceName": _SCORED, "scoreName": _SCORED}}
    by_score = {"mode": "Exact", "configurations": [{"scoreCoordinate": scored, "weight": 1}]}
    placement = {"metadata": {"name": name}, "spec": {"prioritizerPolicy": by_score, **spec}}
    await client.create(PLACEMENTS, placement, "default")


def labelled(**labels: str) -> Object:
    """Return a predicate of a Placement, and a group of its decisions: clusters with labels."""
    return {"labelSelector": {"matchLabels": labels}}


async def label(client: Client, cluster: str, **labels: str | None) -> None:
    """Label a ManagedCluster."""
    await client.patch(kinds.MANAGED_CLUSTERS, cluster, {"metadata": {"labels": labels}})


async def taint(client: Client, cluster: str, *taints: Object) -> None:
    """Have a ManagedCluster have these taints only."""
    await client.patch(kinds.MANAGED_CLUSTERS, cluster, {"spec": {"taints": list(taints)}})


async def score(client: Client, cluster: str, value: int) -> None:
    """Write the score of a cluster, as a collector does: it first makes one that is empty."""
    with suppress(AlreadyExists):
        await client.create(SCORES, {"metadata": {"name": _SCORED}}, cluster)

    status = {"scores": [{"name": _SCORED, "value": value}]}
    await client.patch(SCORES, _SCORED, {"status": status}, cluster, subresource="status")


async def until_decided(client: Client, placement: str, *clusters: str) -> Objects:
    """Wait until a Placement is decided for these clusters, in the order of the decision's
    objects; return these."""

    def is_so(found: dict[str, Object]) -> bool:
        return bool(found) and decided(list(found.values())) == list(clusters)

    label = f"{keys.OCM_PLACEMENT}={placement}"
    found = await kit.until(client, DECISIONS, is_so, namespace="default", label_selector=label)
    return [found[key] for key in sorted(found)]


def decided(found: Objects) -> list[str]:
    """Return the clusters of a Placement's decisions, of which there are fewer than ten."""
    entries = [
        entry
        for obj in sorted(found, key=objects.name)
        for entry in objects.status(obj).get("decisions") or ()
    ]
    return [entry["clusterName"] for entry in entries]
