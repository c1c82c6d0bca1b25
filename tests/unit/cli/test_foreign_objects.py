"""What belongs to somebody else is not taken for vnode's own."""

from __future__ import annotations

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.cli.connect.connector import Connector
from vnode.cli.connect.desired import DesiredConnection
from vnode.cli.kubeconfigs import ClusterEndpoint


class Connecting:
    """A source that is connected to a target, as the user `name` in its namespace vnode."""

    def __init__(self, name: str = "c1") -> None:
        self.source = APIServer("c1", SystemClock(), seed=1)
        self.target = APIServer("c2", SystemClock(), seed=2)
        for server in (self.source, self.target):
            for namespace in ("kube-system", "vnode"):
                server.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})

        endpoint = ClusterEndpoint("https://c2", None)
        self.connection = DesiredConnection("", "vnode", "gpu", name, endpoint, 3600, selector={})
        self.said: list[str] = []

    async def run(self) -> None:
        clients = self.source.client(), self.target.client()
        await Connector(*clients, self.connection, self.said.append).run()

    def writes(self) -> list[str]:
        asked = [*self.source.requests, *self.target.requests]
        return [each.verb for each in asked if each.verb not in ("get", "list")]


def account(**owner: str) -> Object:
    references = [{"controller": True, "uid": "o", **owner}] if owner else []
    return {"metadata": {"name": "vnode", "namespace": "vnode", "ownerReferences": references}}


async def test_a_source_gets_no_token_of_an_account_that_others_use() -> None:
    """A source by the name `vnode` would be the target's agent, with all of its rights."""
    connecting = Connecting("vnode")
    connecting.target.add(kinds.SERVICE_ACCOUNTS, account())
    with pytest.raises(ConfigError, match=r"serviceaccount/vnode .* pass another --cluster-name"):
        await connecting.run()

    assert not connecting.writes()


async def test_an_account_that_is_left_of_a_source_is_replaced() -> None:
    connecting = Connecting("vnode")
    connecting.target.add(
        kinds.SERVICE_ACCOUNTS, account(kind="ClusterSource", name="vnode", apiVersion="v1")
    )
    await connecting.run()
    await connecting.run()
    assert "source: clustertarget/gpu unchanged" in connecting.said


async def test_a_target_of_a_cluster_profile_is_left_as_it_is() -> None:
    """The API server would refuse a Secret beside the profile, when the other side is made."""
    connecting = Connecting()
    spec = {"clusterProfile": {"name": "berlin"}}
    connecting.source.add(kinds.CLUSTER_TARGETS, {"metadata": {"name": "gpu"}, "spec": spec})
    with pytest.raises(ConfigError, match="reached by the ClusterProfile 'berlin'"):
        await connecting.run()

    assert not connecting.writes()


async def test_a_source_that_is_named_as_its_own_target_is_told() -> None:
    connecting = Connecting()
    connecting.target = connecting.source
    await connecting.run()
    assert connecting.said[0] == "source: clustertarget/gpu created"
    assert connecting.said[1].startswith("The target is the source itself")
