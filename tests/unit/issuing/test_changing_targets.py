"""Tokens follow their target as it comes, moves, or is replaced by another cluster."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace

import pytest

from tests.apiserver import links as test_links
from tests.apiserver.server import APIServer
from tests.unit.issuing.issuing_world import IssuingWorld
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.api.identity import Identity
from vnode.kube import endpoint
from vnode.runtime.links import TargetKey

pytestmark = pytest.mark.looptime


async def test_a_cluster_that_is_replaced_gives_another_token(clock: Clock) -> None:
    world = IssuingWorld(clock)
    world.request()
    replacement = APIServer("c3", clock)
    async with world.running():
        world.links.remove(world.link)
        world.links.add(world.make_link("cluster-3", replacement))
        await asyncio.sleep(2)

    assert replacement.count("create", kinds.SERVICE_ACCOUNTS, "token") == 1
    assert objects.status(world.find())["clusterUID"] == "cluster-3"


async def test_another_address_of_the_same_cluster_keeps_the_token(clock: Clock) -> None:
    world = IssuingWorld(clock)
    authority = b"-----BEGIN CERTIFICATE-----"
    client = world.link.client
    client.endpoint = replace(client.endpoint, authority=authority)
    world.request()
    async with world.running():
        token = world.token()
        assert base64.b64decode((world.secret() or {})["data"]["ca.crt"]) == authority
        world.links.remove(world.link)
        moved = world.make_link("cluster-2")
        moved.client.endpoint = replace(client.endpoint, url="https://moved", authority=None)
        world.links.add(moved)
        await asyncio.sleep(2)

    data = (world.secret() or {})["data"]
    reached = endpoint.from_kubeconfig(base64.b64decode(data["kubeconfig"]))
    assert (reached.url, world.token()) == ("https://moved", token)
    assert "ca.crt" not in data
    assert world.asked() == 1


async def test_a_target_that_comes_and_goes_has_no_other_tried_again(clock: Clock) -> None:
    world = IssuingWorld(clock)
    world.source.add(kinds.CLUSTER_TARGETS, {"metadata": {"name": "flapping"}})
    other = test_links.link_to(
        APIServer("c3", clock), TargetKey("", "flapping"), Identity("c1", "cluster-1"), clock
    )
    world.links.add(other)
    world.target.fail(Denied(403, "Forbidden", "no"), verb="create", times=None)
    world.request()
    async with world.running():
        before = world.target.count("create")
        for healthy in (False, True) * 3:
            test_links.set_healthy(other, healthy, clock)
            await asyncio.sleep(1)

        assert world.target.count("create") == before
        test_links.set_healthy(world.link, False, clock)
        test_links.set_healthy(world.link, True, clock)
        await asyncio.sleep(1)
        assert world.target.count("create") > before


async def test_a_target_that_comes_later_is_used_at_once(clock: Clock) -> None:
    world = IssuingWorld(clock, connected=False)
    world.request()
    world.request("west", targetRef={"kind": "ClusterTarget", "name": "west"})
    async with world.running():
        assert world.conditions()["AuthTokenRequestValid"][0] == "True"
        assert world.conditions()["ServiceAccountFoundOrCreated"] == ("False", "TargetUnreachable")
        assert world.conditions("west")["AuthTokenRequestValid"] == ("False", "TargetNotFound")
        world.links.add(world.link)
        await asyncio.sleep(1)
        assert world.conditions()["ServiceAccountTokenRetrieved"][0] == "True"
