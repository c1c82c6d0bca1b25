"""A chaperon whose pod no informer has seen yet, and which has gone by then."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.pods.source.chaperon_gc import ChaperonGC
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime

US = Identity("c1", "us")


async def test_an_orphan_goes_though_its_pod_was_never_seen_and_goes_later(clock: Clock) -> None:
    source, target = APIServer("c1", clock), APIServer("c2", clock)
    pod = source.add(kinds.PODS, {"metadata": {"name": "web", "namespace": "default"}})
    labels = {keys.PARENT_UID: objects.uid(pod), keys.PARENT_CLUSTER_NAME: US.name}
    annotations = {keys.PARENT_NAME: "web", keys.PARENT_NAMESPACE: "default"}
    metadata = {"name": "web-bcdfg", "labels": labels, "annotations": annotations}
    chaperon = target.add(kinds.POD_CHAPERONS, {"metadata": metadata})
    link = links.link_to(target, TargetKey("default", "c2"), US, clock)
    known = Links()
    known.add(link)
    gc = ChaperonGC(source.client(), known, lambda _key: None, clock)
    async with links.connected(link), background.running(gc.run()):
        gc.on_chaperon(link, chaperon)
        await asyncio.sleep(5)
        assert target.find(kinds.POD_CHAPERONS, "web-bcdfg", "default"), "its pod is there"

        source.remove(kinds.PODS, "web", "default")  # of which no informer tells
        await asyncio.sleep(60)
        assert not target.find(kinds.POD_CHAPERONS, "web-bcdfg", "default")
