"""What the parts of following hear of candidates in targets."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.permitted import NO_CLIENT, all_namespaces
from vnode.api import keys, kinds, names
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.following import config
from vnode.following.following import Following
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime

US = Identity("c1", "uid-1")
TARGET = TargetKey("", "c2")
MAP = Key(TARGET.node_name, Ref(kinds.CONFIG_MAPS, "ns", "m"))


def pod(uid):
    spec = {"volumes": [{"name": "v", "configMap": {"name": "m"}}]}
    return {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": spec}


def chaperon(uid):
    labels = {keys.PARENT_UID: uid, keys.PARENT_CLUSTER_NAME: US.name}
    annotations = {
        keys.PARENT_NAME: "p",
        keys.PARENT_NAMESPACE: "ns",
        keys.PARENT_CLUSTER_UID: US.uid,
        keys.TARGET: str(TARGET),
    }
    metadata = {"name": names.chaperon("p", uid), "namespace": "ns"}
    return {"metadata": {**metadata, "labels": labels, "annotations": annotations}}


@pytest.fixture
async def target(clock):
    return APIServer("c2", clock)


@pytest.fixture
async def link(target, clock):
    return links.link_to(target, TARGET, US, clock)


@pytest.fixture
def following(clock):
    return Following(
        *(NO_CLIENT, Links(), US, config.FollowingConfig()),
        relabel=None,
        target_exists=None,
        enabled_namespaces=all_namespaces(),
        complete=lambda _node, _namespace: True,
        events=None,
        clock=clock,
    )


async def test_the_end_of_an_earlier_pods_candidate_takes_nothing_from_its_namesake(
    following, target, link
):
    async def end(uid):
        target.add(kinds.POD_CHAPERONS, chaperon(uid))
        await asyncio.sleep(1)
        assert link.candidate("ns/p", uid)
        target.remove(kinds.POD_CHAPERONS, names.chaperon("p", uid), "ns")
        await asyncio.sleep(1)
        assert not link.candidate("ns/p", uid)

    async with links.connected(link):
        following._on_link(link)
        following.on_pod(None, pod("now"))
        following._references.announce(pod("now"), link.node_name)
        await end("earlier")
        assert following._references.need(MAP, link) is Need.ANNOUNCED
        await end("now")
        assert following._references.need(MAP, link) is Need.NONE


async def test_all_that_a_candidate_needs_is_looked_at_again(following, link, monkeypatch):
    asked = []
    monkeypatch.setattr(following._tokens, "renew", lambda *args: asked.append(args))
    following.on_pod(None, pod("now"))
    following.renew(pod("now"), link)
    assert following._references.need(MAP, link) is Need.ANNOUNCED
    assert asked == [(pod("now"), link)]
    link.is_self = True
    following.renew(pod("now"), link)
    assert len(asked) == 1
