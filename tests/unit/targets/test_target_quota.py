"""Of the Targets of a namespace only so many are connected, the oldest ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import background
from tests.apiserver.server import APIServer
from vnode.agent import config
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.endpoint import Trust
from vnode.kube.events import EventRecorder
from vnode.nodes import controller as nodes
from vnode.nodes.controller import NodeController
from vnode.runtime.links import Links
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister
from vnode.targets.target_quota import TargetQuota

pytestmark = pytest.mark.looptime

# --- which ones fit

NAMES = st.sampled_from("abcdef")
CHANGES = st.lists(
    st.tuples(st.sampled_from(["n1", "n2", ""]), NAMES, st.sampled_from(["1", "2", None])),
    max_size=30,
)


@given(CHANGES, st.integers(0, 3))
def test_the_oldest_fit_and_each_turn_is_told(
    changes: list[tuple[str, str, str | None]], limit: int
) -> None:
    quota, present = TargetQuota(limit), dict[TargetKey, Object]()
    known: dict[TargetKey, bool] = {}
    quota.subscribe(lambda key: known.update({key: quota.fits(key)}))
    for namespace, name, created in changes:
        key = TargetKey(namespace, name)
        old, new = present.pop(key, None), None
        if created is not None:
            since = _created(old) if old else created
            metadata = {"namespace": namespace, "name": name, "creationTimestamp": since}
            new = present[key] = {"metadata": metadata}

        if namespace:  # the others are ClusterTargets
            quota.on_target(old, new)

        known.pop(key, None)
        if new:
            known[key] = quota.fits(key)

        for each in present:
            older = [
                other
                for other in present
                if other.namespace == each.namespace
                and (_created(present[other]), other.name) < (_created(present[each]), each.name)
            ]
            assert quota.fits(each) is (not each.namespace or len(older) < limit)

        assert known == {each: quota.fits(each) for each in present}


def _created(target: Object) -> str:
    return str(objects.metadata(target)["creationTimestamp"])


def test_the_limit_is_a_setting_that_may_be_none_but_not_less(tmp_path: Path) -> None:
    def load(text: str) -> int:
        file = tmp_path / "agent.yaml"
        head = "apiVersion: vnode.dev/v1alpha1\nkind: AgentConfiguration\n"
        file.write_text(head + text)
        return config.load(file).targets_per_namespace

    assert load("") == 20
    assert load("targetsPerNamespace: 0") == 0
    with pytest.raises(ConfigError, match="targetsPerNamespace must not be negative"):
        load("targetsPerNamespace: -1")


# --- what becomes of them


class Cluster:
    """A source whose Targets all lead to itself, and the parts of its agent that connect them."""

    def __init__(self, clock: Clock, limit: int) -> None:
        self.server, self.clock = APIServer("c1", clock), clock
        self._limit = limit

    def add(self, namespace: str, *names: str) -> None:
        if namespace and self.server.find(kinds.NAMESPACES, namespace) is None:
            self.server.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})

        kind = kinds.TARGETS if namespace else kinds.CLUSTER_TARGETS
        for name in names:
            metadata = {"namespace": namespace, "name": name} if namespace else {"name": name}
            self.server.add(kind, {"metadata": metadata, "spec": {"self": True}})

    def remove(self, namespace: str, name: str) -> None:
        self.server.remove(kinds.TARGETS, name, namespace)

    def nodes(self) -> set[str]:
        return {objects.name(node) for node in self.server.all(kinds.NODES)}

    def reason(self, namespace: str, name: str) -> str:
        obj = self.server.find(kinds.TARGETS, name, namespace) or {}
        return str((objects.condition(obj, "Ready") or {}).get("reason", ""))

    def message(self, namespace: str, name: str) -> str:
        obj = self.server.find(kinds.TARGETS, name, namespace) or {}
        return str((objects.condition(obj, "Ready") or {}).get("message", ""))

    @asynccontextmanager
    async def running(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Links]:
        local, links = self.server.client(), Links()
        monkeypatch.setattr(
            "vnode.targets.connection.RecognizedClient",
            lambda _endpoint, _recognition, name, scope: self.server.client(name=name),
        )
        targets = self.targets = TargetLister(local, limit=self._limit)
        controller = TargetController(
            *(local, Identity("c1", "u"), targets, links),
            clock=self.clock,
            trust=lambda _key: Trust(),
        )
        virtual = nodes.informer(local)
        node_controller = NodeController(
            *(local, virtual, links, targets),
            advertise_address="192.0.2.1",
            port_of=lambda _name: None,
            clock=self.clock,
        )
        events = EventRecorder(local, "vnode", self.clock)
        runs = (
            targets.run(),
            virtual.run(),
            controller.run(),
            controller.lead(events),
            node_controller.run(),
        )
        async with background.running(*runs):
            await asyncio.sleep(5)
            yield links


def connected(links: Links) -> set[str]:
    return {str(link.target) for link in links}


async def test_those_beyond_the_limit_have_no_connection_and_no_node_and_say_why(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(clock, 2)
    for name in ("z", "y", "x", "w"):  # the oldest first
        cluster.add("team", name)
        await asyncio.sleep(2)

    cluster.add("other", "a", "b")
    cluster.add("", *"cdefg")
    async with cluster.running(monkeypatch) as links:
        assert connected(links) == {"team/z", "team/y", "other/a", "other/b", *"cdefg"}
        assert cluster.nodes() == {link.node_name for link in links}
        assert cluster.reason("team", "x") == cluster.reason("team", "w") == "TooManyTargets"
        assert "targetsPerNamespace" in cluster.message("team", "x")
        assert "oldest 2" in cluster.message("team", "x")


async def test_who_serves_all_namespaces_is_connected_first(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(clock, 2)
    for number in range(40):
        cluster.add(f"team-{number}", "a")

    cluster.add("", "z")
    async with cluster.running(monkeypatch) as links:
        assert str(next(iter(links)).target) == "z"
        assert len(links) == 41


async def test_the_next_one_takes_the_place_of_one_that_is_deleted(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(clock, 1)
    for name in ("z", "y", "x"):
        cluster.add("team", name)
        await asyncio.sleep(2)

    async with cluster.running(monkeypatch) as links:
        assert connected(links) == {"team/z"}
        cluster.remove("team", "z")
        await asyncio.sleep(30)
        assert connected(links) == {"team/y"}
        assert cluster.nodes() == {TargetKey("team", "y").node_name}
        assert cluster.reason("team", "y") not in ("", "TooManyTargets")
        assert cluster.reason("team", "x") == "TooManyTargets"


async def test_one_that_an_older_one_displaces_is_disconnected(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times of creation have seconds only: within one, the name decides."""
    cluster = Cluster(clock, 1)
    async with cluster.running(monkeypatch) as links:
        cluster.add("team", "b")
        await asyncio.sleep(0.2)
        assert connected(links) == {"team/b"}
        cluster.add("team", "a")
        await asyncio.sleep(30)
        assert connected(links) == {"team/a"}
        assert cluster.reason("team", "b") == "TooManyTargets"


async def test_a_limit_that_is_lowered_deletes_no_node(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kubernetes would delete the pods on it."""
    cluster = Cluster(clock, 2)
    cluster.add("team", "a", "b")
    async with cluster.running(monkeypatch):
        both = cluster.nodes()
        assert len(both) == 2

    cluster._limit = 1
    async with cluster.running(monkeypatch) as links:
        await asyncio.sleep(60)
        assert cluster.targets.has_node(TargetKey("team", "b").node_name)
        assert cluster.targets.finalizers("team") == [TargetKey("team", "a").finalizer]
        assert connected(links) == {"team/a"}
        assert cluster.nodes() == both
        node = cluster.server.find(kinds.NODES, TargetKey("team", "b").node_name) or {}
        assert (objects.condition(node, "Ready") or {})["reason"] == "TargetNotConnected"
