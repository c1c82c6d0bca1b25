"""The recipe that makes ClusterProfiles of the clusters of Karmada, up to the connection."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests import inventory, kit
from tests.fleets import SOURCE
from tests.integration.inventoried import Inventoried, inventoried
from tests.kit import Fleet
from vnode.api import kinds
from vnode.api.errors import NotFound

__all__ = ["inventoried"]


async def test_clusters_of_karmada_become_targets_by_the_recipe(
    inventoried: Inventoried, fleet: Fleet
) -> None:
    """Karmada's objects are played here; the recipe, the CRD and the plugin are real."""
    source, namespace = inventoried.source, inventoried.namespace
    await inventory.installed(source)
    found = await source.get(kinds.SECRETS, "c2", namespace)
    reached = inventoried.access["cluster"]
    data = {"token": found["data"]["token"], "caBundle": reached["certificate-authority-data"]}
    place = {"namespace": namespace, "name": "member"}
    spec = {"syncMode": "Push", "apiEndpoint": reached["server"], "secretRef": place}
    member = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "member"},
        "spec": spec,
    }
    karmada = str(kit.ROOT / "tests/docs/karmada.yaml")
    await source.create(kinds.SECRETS, {"metadata": place, "data": data})
    try:
        await asyncio.to_thread(fleet.kubectl, SOURCE, "apply", "-f", karmada)
        established = ("wait", "--for=condition=Established", "crd/clusters.cluster.karmada.io")
        await asyncio.to_thread(fleet.kubectl, SOURCE, *established)
        played = msgspec.json.encode(member).decode()
        await asyncio.to_thread(fleet.kubectl, SOURCE, "apply", "-f", "-", input=played)
        await run_recipe(inventoried)
        await inventoried.add_target("member")
        async with inventoried.agent():
            await inventoried.until_reason("member", "Connected")
            description = inventoried.link("member").description
            assert description.labels["vnode.dev/cluster-manager"] == "karmada"
            await run_recipe(inventoried)
            await asyncio.to_thread(fleet.kubectl, SOURCE, "delete", "-f", "-", input=played)
            await run_recipe(inventoried, "--prune")
            await inventoried.until_reason("member", "ProfileNotFound")

        with pytest.raises(NotFound):
            await source.get(kinds.SECRETS, "karmada-member", namespace)
    finally:
        await asyncio.to_thread(fleet.kubectl, SOURCE, "delete", "-f", karmada)


async def run_recipe(inventoried: Inventoried, *words: str) -> None:
    kubeconfig, namespace = str(inventoried.kubeconfig), inventoried.namespace
    program = str(kit.ROOT / "examples/inventories/karmada_profiles.py")
    clusters = ("--karmada", kubeconfig, "--source", kubeconfig)
    places = ("--namespace", namespace, "--secrets-namespace", namespace)
    kubectl = Path(await asyncio.to_thread(kit.program, "kubectl"))
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, program, *clusters, *places, *words],
        env={**os.environ, "PATH": os.pathsep.join([str(kubectl.parent), os.environ["PATH"]])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
