"""A fleet of the version before, with what runs in it: c1 sends to c2, and to c3 with Admiralty."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hack.fleetlib.agents import VnodeTree
from tests import kit
from tests.e2e import admiralty_target
from tests.fleets import started
from tests.kit import Fleet
from tests.upgrades import before, witness
from tests.upgrades.patient import PatientClient
from tests.upgrades.releases import ReleasedFleet
from tests.upgrades.witness import Witness
from vnode.api import keys, kinds, objects
from vnode.kube.client import Client

RUNNING = Path(__file__).with_name("running.yaml")
PODS = 12
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "kept"},
    "spec": {
        "storageClassName": "there",
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
    },
}
"""What the claim of running.yaml is bound to in c2; nobody mounts it, as kwok runs nothing."""


@pytest.fixture(scope="session")
def version_before() -> VnodeTree:
    """Return the sources of the version before, and their interpreter."""
    return before.tree()


@pytest.fixture(scope="module")
def released(
    tmp_path_factory: pytest.TempPathFactory, version_before: VnodeTree
) -> Iterator[ReleasedFleet]:
    """Yield a fleet of the version before, two replicas in each cluster; c1 reaches c2 and c3.

    If $VNODE_TEST_FLEET names the folder of such a fleet, yield that one, and let it run on.
    """
    if folder := os.environ.get("VNODE_TEST_FLEET"):
        yield ReleasedFleet(Fleet(Path(folder)))
        return

    with started(tmp_path_factory, "c1", "c2", "c3", "--nodes", "3", "--replicas", "2") as fleet:
        found = ReleasedFleet(fleet)
        for name in ("c1", "c2", "c3"):
            found.start(name, version_before)

        for name in ("c2", "c3"):
            found.connect("c1", name, version_before)

        yield found


@pytest.fixture
def fleet(released: ReleasedFleet) -> Fleet:
    """Return the fleet, for its clients."""
    return released.fleet


@pytest.fixture
async def c1(fleet: Fleet) -> AsyncIterator[Client]:
    async with fleet.client("c1", PatientClient) as client:
        yield client


@pytest.fixture
async def c2(fleet: Fleet) -> AsyncIterator[Client]:
    async with fleet.client("c2", PatientClient) as client:
        yield client


@pytest.fixture
async def c3(fleet: Fleet) -> AsyncIterator[Client]:
    async with fleet.client("c3", PatientClient) as client:
        yield client


@pytest.fixture
async def running(
    released: ReleasedFleet, c1: Client, c2: Client, c3: Client
) -> AsyncIterator[Witness]:
    """Yield a witness of what runs, with Admiralty in c3 in place of the version before."""
    await asyncio.to_thread(released.stop, "c3")
    await admiralty_target.forget_vnode(c3)
    async with admiralty_target.running(c3):
        await c2.request("POST", "/api/v1/persistentvolumes", body=VOLUME)
        claims_follow = {"metadata": {"annotations": {keys.STORAGE_CLASSES: "here=there"}}}
        await c1.patch(kinds.TARGETS, "c2", claims_follow, "default")
        words = ("apply", "--server-side", "-f", str(RUNNING))
        await asyncio.to_thread(released.fleet.kubectl, "c1", *words)
        await kit.until(c1, kinds.PODS, lambda p: kit.running(p, PODS), namespace="default")
        async with witness.watching(c1, c2, c3) as found:
            await c1.create(kinds.PODS, kit.pod_in("nowhere", "waits"), "default")
            await kit.until_one(
                c1, kinds.PODS, "waits", "default", lambda p: objects.condition(p, "PodScheduled")
            )
            yield found
