"""What Admiralty leaves on Services and Ingresses of the source keeps none of them there."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.fleet import EVERYTHING, SOON, FollowingFleet
from vnode.api import keys, kinds, objects
from vnode.following.config import FollowingConfig

pytestmark = pytest.mark.looptime

KINDS = (kinds.SERVICES, kinds.INGRESSES)


def add(fleet, kind, *finalizers):
    metadata = {
        "name": "web",
        "namespace": "ns",
        "labels": {keys.HAS_FINALIZER: "true"},
        "finalizers": list(finalizers),
    }
    fleet.source.add(kind, {"metadata": metadata, "spec": {}})


@pytest.mark.parametrize("follows", [EVERYTHING, FollowingConfig(services=False)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
async def test_one_with_admiraltys_finalizer_goes_when_it_is_deleted(clock, kind, follows):
    fleet = FollowingFleet(clock, follows=follows)
    add(fleet, kind, keys.PREFIX + "gone", "example.com/kept")
    async with fleet.running():
        found = fleet.source.find(kind, "web", "ns") or {}
        assert objects.finalizers(found) == ["example.com/kept"]
        assert keys.HAS_FINALIZER not in objects.labels(found)
        written = fleet.source.count("patch", kind)
        await asyncio.sleep(100)
        assert fleet.source.count("patch", kind) == written


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)
async def test_one_that_was_deleted_before_vnode_came_goes_then(clock, kind):
    fleet = FollowingFleet(clock)
    add(fleet, kind, keys.PREFIX + "gone")
    await fleet.source.client().delete(kind, "web", "ns")
    assert fleet.source.find(kind, "web", "ns")
    async with fleet.running():
        await asyncio.sleep(SOON)
        assert fleet.source.find(kind, "web", "ns") is None
