"""What the ClusterSummary says of the classes that the cluster has."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import class_names, keys, kinds, node_features, objects
from vnode.api.class_names import PriorityValue
from vnode.api.errors import Denied, NotFound, Unreachable
from vnode.kube.informer import Informer
from vnode.nodes.summary import HEARTBEAT, SummaryWriter
from vnode.pods.source import proxy_state

pytestmark = pytest.mark.looptime

LONG = 5.0  # seconds in which what changes is written, and a list that failed is tried again

HIGH = PriorityValue(7)


def classes(runtime, devices=None, **priorities):
    names = None if runtime is None else frozenset(runtime)
    return class_names.ClassNames(names, frozenset(priorities), priorities, devices or {})


class Cluster:
    """An API server with some classes, and the writer of its summary."""

    def __init__(self, clock):
        self.clock = clock
        self.server = APIServer("c1", clock)
        self.server.add(kinds.RUNTIME_CLASSES, {"metadata": {"name": "gvisor"}})
        self.server.add(kinds.PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7})

    @property
    def classes(self):
        """What the summary says."""
        summary = self.server.find(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        assert summary is not None
        return class_names.decode(objects.annotations(summary).get(keys.CLASSES))

    @asynccontextmanager
    async def running(self):
        """Have the summary written."""
        writer = SummaryWriter(self.server.client(), "vnode", clock=self.clock)
        async with background.running(writer.run()):
            await asyncio.sleep(LONG)
            yield


@pytest.fixture
async def cluster(clock):
    return Cluster(clock)


async def test_the_summary_has_the_names_of_classes_as_they_come_and_go(cluster):
    async with cluster.running():
        assert cluster.classes == classes(["gvisor"], high=HIGH)
        low = {"metadata": {"name": "low"}, "value": -1, "preemptionPolicy": "Never"}
        cluster.server.add(kinds.PRIORITY_CLASSES, low)
        cluster.server.remove(kinds.RUNTIME_CLASSES, "gvisor")
        await asyncio.sleep(LONG)
        assert cluster.classes == classes([], high=HIGH, low=PriorityValue(-1, never=True))


async def test_the_summary_has_device_classes_and_the_resources_for_which_they_stand(cluster):
    async with cluster.running():
        spec = {"extendedResourceName": "example.com/gpu"}
        cluster.server.add(kinds.DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": spec})
        cluster.server.add(kinds.DEVICE_CLASSES, {"metadata": {"name": "nic"}, "spec": {}})
        await asyncio.sleep(LONG)
        wanted = {"gpu": "example.com/gpu", "nic": ""}
        assert cluster.classes == classes(["gvisor"], wanted, high=HIGH)
        cluster.server.remove(kinds.DEVICE_CLASSES, "gpu")
        await asyncio.sleep(LONG)
        assert cluster.classes == classes(["gvisor"], {"nic": ""}, high=HIGH)


async def test_an_old_cluster_has_no_device_classes_and_nothing_waits_for_them(cluster):
    unserved = NotFound(404, "", "404 page not found")
    cluster.server.fail(unserved, verb="list", kind=kinds.DEVICE_CLASSES, times=None)
    async with cluster.running():
        assert cluster.classes.device_classes is None
        assert cluster.classes.runtime_classes == {"gvisor"}


def declaring(name, *features):
    ready = {"type": "Ready", "status": "True"}
    return {
        "metadata": {"name": name},
        "status": {"conditions": [ready], "declaredFeatures": list(features)},
    }


async def test_the_summary_has_the_features_of_all_nodes_as_they_come_and_go(cluster):
    def features():
        summary = cluster.server.find(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        text = objects.annotations(summary or {}).get(keys.NODE_FEATURES)
        return list(node_features.decode(text).declared_features)

    async with cluster.running():
        assert features() == []
        cluster.server.add(kinds.NODES, declaring("new", "Resize", "Restart"))
        await asyncio.sleep(LONG)
        assert features() == ["Resize", "Restart"]
        cluster.server.add(kinds.NODES, declaring("old", "Resize"))
        await asyncio.sleep(LONG)
        assert features() == ["Resize"]
        cluster.server.add(kinds.NODES, declaring("older"))
        await asyncio.sleep(LONG)
        assert features() == []

        def cordon(node):
            node["spec"] = {"unschedulable": True}

        cluster.server.change(kinds.NODES, "older", "", cordon)
        await asyncio.sleep(LONG)
        assert features() == ["Resize"]


async def test_classes_that_the_agent_may_not_list_are_unknown_and_nothing_waits_for_them(cluster):
    denied = Denied(403, "Forbidden", "no")
    cluster.server.fail(denied, verb="list", kind=kinds.RUNTIME_CLASSES, times=None)
    async with cluster.running():
        assert cluster.classes == classes(None, high=HIGH)


async def test_a_new_agent_keeps_what_the_summary_says_until_it_knows_better(cluster):
    async with cluster.running():
        known = cluster.classes

    fault = cluster.server.fail(
        Unreachable("late"), verb="list", kind=kinds.RUNTIME_CLASSES, times=None
    )
    cluster.server.remove(kinds.PRIORITY_CLASSES, "high")
    async with cluster.running():
        assert cluster.classes == known
        fault.clear()
        await asyncio.sleep(2 * LONG)
        assert cluster.classes.priority_classes == frozenset()


def machine_pod(name, node, scheduler, **status):
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    spec = {"nodeName": node, "schedulerName": scheduler, "containers": [container]}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", **status}}


@pytest.mark.parametrize(
    ("away", "writes"),
    [pytest.param(20.0, 0, id="soon"), pytest.param(100.0, 1, id="late")],
)
async def test_a_restart_writes_a_summary_only_when_a_heartbeat_is_due(cluster, away, writes):
    async with cluster.running():
        pass

    await asyncio.sleep(away)
    before = len(cluster.server.received("patch", kinds.CLUSTER_SUMMARIES))
    async with cluster.running():
        assert len(cluster.server.received("patch", kinds.CLUSTER_SUMMARIES)) == before + writes
        await asyncio.sleep(HEARTBEAT)
        later = len(cluster.server.received("patch", kinds.CLUSTER_SUMMARIES))
        assert later == before + writes + 1  # it beats on


@pytest.mark.parametrize("beat", ["2031-01-01T00:00:00Z", "2026-01-01T00:00:00", "x", ""])
async def test_a_heartbeat_that_cannot_be_gone_on_with_is_renewed(cluster, beat):
    async with cluster.running():
        pass

    def write(summary):
        summary["metadata"]["annotations"][keys.HEARTBEAT] = beat

    cluster.server.change(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", write)
    async with cluster.running():
        summary = cluster.server.find(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        renewed = objects.parse_timestamp(objects.annotations(summary)[keys.HEARTBEAT])
        age = (cluster.clock.now() - renewed).total_seconds()
        assert 0 <= age <= LONG + 1


async def test_proxies_that_others_watch_are_not_watched_twice_and_count_on_machines(clock):
    server = APIServer("c1", clock)
    amounts = {"cpu": "8", "pods": "10"}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": ready}
    server.add(kinds.NODES, {"metadata": {"name": "m"}, "status": status})
    server.add(kinds.PODS, machine_pod("plain", "m", "default-scheduler"))
    for name, node in (("by-hand", "m"), ("usual", "admiralty-default-c2-1")):
        server.add(kinds.PODS, machine_pod(name, node, keys.PROXY_SCHEDULER))

    def free():
        summary = server.find(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        return json.loads(objects.annotations(summary or {})[keys.FREE_RESOURCES])["sum"]

    client = server.client()
    proxies = Informer(client, kinds.PODS, field_selector=keys.PROXY_PODS, trim=proxy_state.trim)
    writer = SummaryWriter(client, "vnode", clock=clock, proxies=proxies)
    async with background.running(writer.run(), proxies.run()):
        await asyncio.sleep(LONG)
        assert free() == {"cpu": "6", "pods": "8"}
        assert len(writer._pods.store) == 1
        server.change(
            kinds.PODS, "by-hand", "default", lambda pod: pod["status"].update(phase="Succeeded")
        )
        await asyncio.sleep(LONG)
        assert free() == {"cpu": "7", "pods": "9"}
        server.remove(kinds.PODS, "plain", "default")
        await asyncio.sleep(LONG)
        assert free() == {"cpu": "8", "pods": "10"}
