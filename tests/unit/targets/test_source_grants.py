"""By which Sources somebody may make PodChaperons in a namespace, as their bindings say."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.targets import source_rbac
from vnode.targets.source_grants import MOST, SourceGrants
from vnode.targets.sources import SourceController

pytestmark = pytest.mark.looptime


def binding(namespace: str, source: str, role: str = source_rbac.SOURCE_ROLE) -> Object:
    metadata = {
        "name": f"{source.replace('/', '-')}-{role}",
        "namespace": namespace,
        "annotations": {source_rbac.SOURCE: source},
    }
    return {"metadata": metadata, "roleRef": {"name": role}}


async def test_those_of_a_namespace_and_those_of_all_hold_there() -> None:
    grants = SourceGrants()
    grants.on_binding(None, binding("a", "a/one"))
    assert grants.of("a") == ("Source a/one",)
    grants.on_binding(None, binding("a", "two"))
    grants.on_binding(None, binding("", "three"))
    assert grants.of("a") == ("ClusterSource three", "ClusterSource two", "Source a/one")
    assert grants.of("b") == ("ClusterSource three",)


async def test_what_lets_nobody_make_chaperons_is_none() -> None:
    grants = SourceGrants()
    grants.on_binding(None, binding("", "one", source_rbac.VIEWER_ROLE))
    grants.on_binding(None, binding("", "one", source_rbac.CLUSTER_ROLE))
    assert grants.of("a") == ()


async def test_one_that_has_gone_holds_no_more() -> None:
    grants, bound = SourceGrants(), binding("a", "a/one")
    grants.on_binding(None, bound)
    grants.on_binding(bound, bound)
    grants.on_binding(bound, None)
    assert grants.of("a") == ()


async def test_few_of_many_are_named() -> None:
    grants = SourceGrants()
    for number in range(2 * MOST):
        grants.on_binding(None, binding("a", f"a/{number}"))

    assert len(grants.of("a")) == MOST


async def test_they_are_those_that_the_controller_binds(clock: Clock) -> None:
    server, grants = APIServer("c2", clock), SourceGrants()
    server.add(kinds.NAMESPACES, {"metadata": {"name": "a"}})
    source = {"metadata": {"name": "c1", "namespace": "a"}, "spec": {"userName": "us"}}
    server.add(kinds.SOURCES, source)
    namespaces = Informer(server.client(), kinds.NAMESPACES)
    controller = SourceController(
        *(server.client(), namespaces, "vnode"), clock=clock, grants=grants
    )
    async with background.running(namespaces.run(), controller.run()):
        await asyncio.sleep(1)
        assert grants.of("a") == ("Source a/c1",)
        server.remove(kinds.SOURCES, "c1", "a")
        await asyncio.sleep(1)
        assert grants.of("a") == ()
