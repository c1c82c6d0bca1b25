"""What a pod's references reach that its user may not: other namespaces, and what a target has for
itself."""

from __future__ import annotations

import asyncio
import copy

import pytest

from tests.unit.following.fleet import BODIES, COPIED, GPU, SOON, FollowingFleet
from vnode.api import kinds

pytestmark = pytest.mark.looptime

LONG = 60.0  # seconds after which what nobody needs is gone
PATHS = [
    "../../kube-system/secrets/x",
    "a/b",
    ".",
    "..",
    "%2e%2e",
    "x?watch=1",
    "x#",
    "x\n",
    "\xe9",
]


@pytest.mark.parametrize("name", PATHS)
async def test_a_reference_that_is_a_path_is_asked_for_nowhere(clock, name):
    fleet = FollowingFleet(clock)
    fleet.source.add(kinds.SECRETS, {"metadata": {"name": "x", "namespace": "kube-system"}})
    async with fleet.running():
        asked = len(fleet.source.requests), len(fleet.gpu.requests)
        spec = {
            "nodeName": GPU.node_name,
            "imagePullSecrets": [{"name": name}],
            "volumes": [
                {"configMap": {"name": name}},
                {"csi": {"nodePublishSecretRef": {"name": name}}},
                {"persistentVolumeClaim": {"claimName": name}},
            ],
            "containers": [{"name": "main"}],
        }
        head = {"name": "web", "namespace": "ns", "uid": "web"}
        fleet.source.add(kinds.PODS, {"metadata": head, "spec": spec})
        await asyncio.sleep(LONG)
        sent = fleet.source.requests[asked[0] :] + fleet.gpu.requests[asked[1] :]

    by_name = [each for each in sent if each.name and each.kind in COPIED]
    assert not by_name
    assert {each.namespace for each in sent if each.kind in COPIED} <= {"ns", ""}
    assert all(kind not in fleet.copied() for kind in COPIED)


async def test_what_a_target_has_for_itself_is_neither_changed_nor_deleted(clock):
    fleet = FollowingFleet(clock)
    fleet.add_originals()
    for kind in COPIED:
        own = {"metadata": {"name": "web", "namespace": "ns"}, **copy.deepcopy(BODIES[kind])}
        fleet.gpu.add(kind, {**own, "data": {"own": "eA=="}} if "data" in own else own)

    before = {kind: fleet.copy(kind) for kind in COPIED}
    async with fleet.running():
        fleet.add_pod()
        await asyncio.sleep(SOON)
        for kind in COPIED:
            fleet.source.remove(kind, "web", "ns")

        fleet.remove_pod()
        await asyncio.sleep(LONG)

    assert {kind: fleet.copy(kind) for kind in COPIED} == before
    said = [message for _name, message in fleet.events_about]
    assert any("Secret web of target gpu is not from this cluster" in text for text in said)
