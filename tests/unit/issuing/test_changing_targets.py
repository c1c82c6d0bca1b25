"""Tokens follow their target as it comes, moves, or is replaced by another cluster."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace

import pytest

from tests.apiserver import links as test_links
from tests.apiserver.server import APIServer
from tests.unit.issuing.issuing_environment import IssuingEnvironment
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.kube import endpoint
from vnode.kube.kubeconfig import Kubeconfig

pytestmark = pytest.mark.looptime


async def test_a_cluster_that_is_replaced_gives_another_token(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    replacement = APIServer("c3", clock)
    async with env.running():
        env.links.remove(env.link)
        env.links.add(env.make_link("cluster-3", replacement))
        await asyncio.sleep(2)

    assert replacement.count("create", kinds.SERVICE_ACCOUNTS, "token") == 1
    assert objects.status(env.find())["clusterUID"] == "cluster-3"


async def test_another_address_of_the_same_cluster_keeps_the_token(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    authority = b"-----BEGIN CERTIFICATE-----"
    client = env.link.client
    client.endpoint = replace(client.endpoint, authority=authority)
    env.request()
    async with env.running():
        token = env.token()
        assert base64.b64decode((env.secret() or {})["data"]["ca.crt"]) == authority
        env.links.remove(env.link)
        moved = env.make_link("cluster-2")
        moved.client.endpoint = replace(client.endpoint, url="https://moved", authority=None)
        env.links.add(moved)
        await asyncio.sleep(2)

    data = (env.secret() or {})["data"]
    reached = endpoint.from_kubeconfig(Kubeconfig.parse(base64.b64decode(data["kubeconfig"])))
    assert (reached.url, env.token()) == ("https://moved", token)
    assert "ca.crt" not in data
    assert env.asked() == 1


async def test_a_target_that_comes_and_goes_has_no_other_tried_again(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.source.add(kinds.CLUSTER_TARGETS, {"metadata": {"name": "flapping"}})
    other = test_links.link_to(
        APIServer("c3", clock), TargetKey("", "flapping"), Identity("c1", "cluster-1"), clock
    )
    env.links.add(other)
    env.target.fail(Denied(403, "Forbidden", "no"), verb="create", times=None)
    env.request()
    async with env.running():
        before = env.target.count("create")
        for healthy in (False, True) * 3:
            test_links.set_healthy(other, healthy, clock)
            await asyncio.sleep(1)

        assert env.target.count("create") == before
        test_links.set_healthy(env.link, False, clock)
        test_links.set_healthy(env.link, True, clock)
        await asyncio.sleep(1)
        assert env.target.count("create") > before


async def test_a_target_that_comes_later_is_used_at_once(clock: Clock) -> None:
    env = IssuingEnvironment(clock, connected=False)
    env.request()
    env.request("west", targetRef={"kind": "ClusterTarget", "name": "west"})
    async with env.running():
        assert env.conditions()["AuthTokenRequestValid"][0] == "True"
        assert env.conditions()["ServiceAccountFoundOrCreated"] == ("False", "TargetUnreachable")
        assert env.conditions("west")["AuthTokenRequestValid"] == ("False", "TargetNotFound")
        env.links.add(env.link)
        await asyncio.sleep(1)
        assert env.conditions()["ServiceAccountTokenRetrieved"][0] == "True"


async def test_targets_that_others_make_and_delete_have_no_request_tried_again(
    clock: Clock,
) -> None:
    """Neither by themselves nor by their connections; its own Target has."""
    env = IssuingEnvironment(clock)
    env.target.fail(Denied(403, "Forbidden", "no"), verb="create", times=None)
    env.request()
    async with env.running():
        await asyncio.sleep(10_000)
        asked = env.target.count("create")
        for number in range(50):
            name = f"west-{number}"
            env.source.add(kinds.TARGETS, {"metadata": {"name": name, "namespace": "hostile"}})
            key, server = TargetKey("hostile", name), APIServer("c3", clock)
            link = test_links.link_to(server, key, Identity("c1", "u"), clock)
            env.links.add(link)
            await asyncio.sleep(1)
            env.links.remove(link)
            env.source.remove(kinds.TARGETS, name, "hostile")

        assert env.target.count("create") <= asked + 1
        env.links.remove(env.link)
        env.links.add(env.link)
        await asyncio.sleep(1)
        assert env.target.count("create") > asked
