"""What Admiralty sent without a name of its cluster is taken over by the UIDs of the originals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli.migration.taking_over import migrate
from vnode.cli.remove.admiralty_finalizers import COPIED
from vnode.cli.remove.report import RemovalReport
from vnode.kube.client import Client

pytestmark = pytest.mark.looptime

GPU = TargetKey("ns", "gpu")


class Federation:
    """A source whose Admiralty had no name, and a target that others like it share."""

    def __init__(self, clock: Clock) -> None:
        self.source, self.target = APIServer("c1", clock), APIServer("gpu", clock)
        self.lines: list[str] = []
        self.report = RemovalReport(self.lines.append)
        for server in (self.source, self.target):
            server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})

        metadata = {"name": GPU.name, "namespace": GPU.namespace}
        self.source.add(kinds.TARGETS, {"metadata": metadata, "spec": {}})

    def add_pod(self, name: str, node: str = "") -> None:
        metadata = {"name": name, "namespace": "ns", "uid": name}
        self.source.add(kinds.PODS, {"metadata": metadata, "spec": {"nodeName": node}})

    def send(
        self, kind: Kind, name: str, uid: str = "", parent: str = "", **fields: object
    ) -> None:
        """Add what Admiralty makes of an object of that UID."""
        metadata = {
            "name": name,
            "namespace": "ns",
            "labels": {keys.PARENT_UID: uid or name, keys.PARENT_CLUSTER_NAME: "", "app": "web"},
            "annotations": {keys.PARENT_NAMESPACE: "ns", keys.PARENT_NAME: parent or name},
        }
        self.target.add(kind, {"metadata": metadata, **fields})

    def has(self, kind: Kind, name: str) -> Object | None:
        return self.target.find(kind, name, "ns")

    def name_on(self, kind: Kind, name: str) -> str:
        """Return the name of the source on an object of the target."""
        return objects.labels(self.has(kind, name) or {})[keys.PARENT_CLUSTER_NAME]

    @asynccontextmanager
    async def connect(self, _local: Client, _target: Object) -> AsyncIterator[Client]:
        yield self.target.client("source")

    async def migrate(self) -> None:
        await migrate(self.source.client(), "c1", self.report, self.connect)


@pytest.fixture
async def federation(clock: Clock) -> Federation:
    return Federation(clock)


async def test_the_chaperon_of_a_bound_pod_is_taken_over_and_keeps_its_name(
    federation: Federation,
) -> None:
    federation.add_pod("web", GPU.node_name)
    federation.send(kinds.POD_CHAPERONS, "web-x2x4z", "web", "web", status={"phase": "Running"})
    await federation.migrate()
    found = federation.has(kinds.POD_CHAPERONS, "web-x2x4z") or {}
    assert objects.labels(found)[keys.PARENT_CLUSTER_NAME] == "c1"
    assert objects.labels(found)["app"] == "web"
    assert keys.PARENT_CLUSTER_UID not in objects.annotations(found)
    assert objects.status(found) == {"phase": "Running"}
    assert federation.lines == ["target ns/gpu: took over 1 PodChaperon"]


@pytest.mark.parametrize("node", ["", "another"], ids=["pending", "bound elsewhere"])
async def test_a_candidate_that_was_not_chosen_is_deleted(
    federation: Federation, node: str
) -> None:
    federation.add_pod("web", node)
    federation.send(kinds.POD_CHAPERONS, "web-x2x4z", "web", "web")
    await federation.migrate()
    assert federation.has(kinds.POD_CHAPERONS, "web-x2x4z") is None
    assert federation.lines[1:] == ["target ns/gpu: deleted 1 candidate"]


@pytest.mark.parametrize("kind", COPIED, ids=lambda kind: kind.plural)
async def test_a_copy_is_taken_over_as_it_is(federation: Federation, kind: Kind) -> None:
    metadata = {"name": "web", "namespace": "ns", "uid": "web"}
    federation.source.add(kind, {"metadata": metadata})
    federation.send(kind, "web", type="Opaque")
    before = federation.has(kind, "web") or {}
    await federation.migrate()
    after = federation.has(kind, "web") or {}
    assert federation.report.left == []
    assert federation.name_on(kind, "web") == "c1"
    assert {**after, "metadata": {}} == {**before, "metadata": {}}
    assert objects.uid(after) == objects.uid(before)
    assert federation.target.count("patch", kind) == 0  # to which a source has no right


async def test_what_another_source_without_a_name_sent_is_left_alone(
    federation: Federation,
) -> None:
    federation.add_pod("web", GPU.node_name)
    federation.send(kinds.POD_CHAPERONS, "web-x2x4z", "another", "web")
    federation.send(kinds.POD_CHAPERONS, "db-x2x4z", "db", "db")
    federation.send(kinds.CONFIG_MAPS, "settings")
    await federation.migrate()
    for kind, name in (
        (kinds.POD_CHAPERONS, "web-x2x4z"),
        (kinds.POD_CHAPERONS, "db-x2x4z"),
        (kinds.CONFIG_MAPS, "settings"),
    ):
        assert federation.name_on(kind, name) == ""

    assert "left 3 objects" in federation.lines[-1]


async def test_what_has_a_name_is_not_touched_and_a_second_run_finds_nothing(
    federation: Federation,
) -> None:
    federation.add_pod("web", GPU.node_name)
    federation.send(kinds.POD_CHAPERONS, "web-x2x4z", "web", "web")
    await federation.migrate()
    before = federation.has(kinds.POD_CHAPERONS, "web-x2x4z")
    federation.lines.clear()
    await federation.migrate()
    assert federation.has(kinds.POD_CHAPERONS, "web-x2x4z") == before
    assert federation.lines == ["target ns/gpu: took over nothing"]


async def test_a_target_that_refuses_is_named(federation: Federation) -> None:
    federation.add_pod("web", GPU.node_name)
    federation.send(kinds.POD_CHAPERONS, "web-x2x4z", "web", "web")
    federation.target.fail(Denied(403, "Forbidden", "no"), verb="patch")
    await federation.migrate()
    assert federation.name_on(kinds.POD_CHAPERONS, "web-x2x4z") == ""
    [left] = federation.report.left
    assert left.startswith("target ns/gpu:")
