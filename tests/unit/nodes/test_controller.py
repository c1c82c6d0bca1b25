"""What the store shows of a Node is a moment old: nothing is written again for that."""

from __future__ import annotations

import asyncio
import math
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import keys, kinds, node_features, node_labels, objects, summary_reports
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.kube.informer import Informer
from vnode.nodes import virtual
from vnode.nodes.coexistence import MOST_SPREADS, ROLE, SPREADS, Coexistence
from vnode.nodes.controller import NodeController
from vnode.runtime import write_limits
from vnode.runtime.expectations import LOST_AFTER
from vnode.runtime.link import ClusterDescription
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime

TARGET = TargetKey("ns", "t")
NAME = TARGET.node_name


class NodeEnvironment:
    """A controller that has just written its Node, and a store that shows what the test says.

    There are `more` Targets, which have no Node yet, and get none: creations hang.
    """

    def __init__(self, clock, *more):
        self.server, self.target = APIServer("c1", clock), APIServer("t", clock)
        self.server.add(kinds.NODES, {**virtual.registration(TARGET), "status": {}})
        self.server.fail(None, verb="create", kind=kinds.NODES, delay=math.inf, times=None)
        client = self.server.client()
        self.nodes = Informer(client, kinds.NODES)
        self.nodes.synced.set()
        self.show()
        self.cordoned = self.server.change(kinds.NODES, NAME, "", _cordon)  # not shown yet
        self.link = links.link_to(self.target, TARGET, Identity("c1", "us"), clock)
        known = Links()
        known.add(self.link)
        self.keys = [TARGET, *more]
        targets = SimpleNamespace(
            wait_synced=self._synced,
            keys=lambda: list(self.keys),
            exists=lambda key: key in self.keys,
            subscribe_each=lambda changed: setattr(self, "changed", changed),
            fits=lambda _: True,
            knows=lambda _: True,
        )
        self.coexistence = Coexistence(client)
        self.controller = NodeController(
            *(client, self.nodes, known, targets),
            coexistence=self.coexistence,
            advertise_address="10.0.0.1",
            port_of=lambda _name: 10251,
            clock=clock,
        )

    @staticmethod
    async def _synced():
        pass

    @property
    def node(self):
        return self.server.find(kinds.NODES, NAME)

    @property
    def writes(self):
        return [request.subresource for request in self.server.received("patch", kinds.NODES)]

    @property
    def created(self):
        requests = self.server.received("create", kinds.NODES)
        return [objects.labels(request.body)[keys.TARGET_NAME] for request in requests]

    def show(self, node=None):
        """Have the store show a state of the Node: by default what it is now."""
        self.nodes._put(node or self.node)

    def offer(self, cpu, labels=None, annotations=None):
        metadata = {"name": keys.SUMMARY_NAME, "labels": labels or {}}
        metadata["annotations"] = annotations or {}
        summary = {"metadata": metadata, "capacity": {"cpu": cpu}, "allocatable": {"cpu": cpu}}
        self.target.add(kinds.CLUSTER_SUMMARIES, summary)


def _cordon(node):
    node["spec"]["unschedulable"] = True


@asynccontextmanager
async def following(clock, *more):
    env = NodeEnvironment(clock, *more)
    env.offer("1")
    async with links.connected(env.link), background.running(env.controller.run()):
        await asyncio.sleep(1)
        assert env.writes == ["", "status"]
        yield env


async def test_a_target_that_comes_or_goes_concerns_its_own_node_alone(clock):
    """A tenant may make and delete Targets all the time, and there are hundreds of Nodes."""
    async with following(clock) as env:
        woken = []
        env.controller._controller.add = woken.append
        other, beside = TargetKey("other", "a"), TargetKey("ns", "b")
        for key in (other, beside):
            env.keys.append(key)
            env.changed(key)

        env.keys.pop()
        env.changed(beside)

    assert woken == [other.node_name, beside.node_name, beside.node_name]


async def test_a_write_is_not_done_again_before_the_store_shows_it(clock):
    async with following(clock) as env:
        env.show(env.cordoned)
        await asyncio.sleep(1)
        assert env.writes == ["", "status"]
        env.show()
        await asyncio.sleep(1)
        assert env.writes == ["", "status"]


async def test_what_changes_meanwhile_is_written_once_the_store_shows_the_last_write(clock):
    async with following(clock) as env:
        env.offer("2")
        await asyncio.sleep(1)
        assert env.writes == ["", "status"]
        env.show()
        await asyncio.sleep(1)
        assert env.writes == ["", "status", "status"]
        assert env.node["status"]["capacity"] == {"cpu": "2"}


async def test_a_write_that_is_never_shown_is_done_again_in_the_end(clock):
    """The API server was restored from a backup: it counts from a lower number."""
    async with following(clock) as env:
        await asyncio.sleep(LOST_AFTER + 1)
        assert env.writes == ["", "status", ""]  # its answer shows the status, too


async def test_a_target_whose_name_fits_no_label_has_no_node(clock):
    """The API server would refuse it, every few seconds: its condition says why there is none."""
    async with following(clock, TargetKey("ns", "x" * 64)) as env:
        assert env.created == []

    async with following(clock, TargetKey("ns", "x" * 63)) as env:
        assert env.created == ["x" * 63]


# --- what it does to the pods and Services of its own cluster

HOSTNAME, RACK = "kubernetes.io/hostname", "example.com/rack"


async def test_a_node_of_an_older_agent_loses_its_places_and_gets_the_labels_of_now(clock):
    env = NodeEnvironment(clock)
    old = {HOSTNAME: NAME, "topology.kubernetes.io/zone": "z"}

    def older(node):
        labels = node["metadata"]["labels"]
        labels |= old
        for key in ("node.kubernetes.io/exclude-disruption", keys.NODE_NAME):
            del labels[key]

    env.server.change(kinds.NODES, NAME, "", older)
    await env.server.client().apply(
        kinds.NODES, {"metadata": {"name": NAME, "labels": {"topology.kubernetes.io/zone": "z"}}}
    )
    env.show()
    env.offer("1", {"topology.kubernetes.io/zone": "z", RACK: "7"})
    async with links.connected(env.link), background.running(env.controller.run()):
        await asyncio.sleep(1)

    labels = objects.labels(env.node)
    assert HOSTNAME not in labels
    assert {"node.kubernetes.io/exclude-disruption", keys.NODE_NAME, ROLE} <= labels.keys()
    assert node_labels.hidden_of(env.node) == {"topology.kubernetes.io/zone": "z"}
    assert labels[RACK] == "7"


async def test_a_label_disappears_as_soon_as_pods_are_spread_over_it_and_stays_away(clock):
    env = NodeEnvironment(clock)
    env.offer("1", {RACK: "7"})
    env.coexistence.pods_known()
    async with links.connected(env.link), background.running(env.controller.run()):
        await asyncio.sleep(1)
        assert objects.labels(env.node)[RACK] == "7"
        env.show()
        pod = {"metadata": {"name": "p"}, SPREADS: frozenset({RACK})}
        env.coexistence.on_pod(None, pod)
        await asyncio.sleep(1)
        assert RACK not in objects.labels(env.node)
        assert node_labels.of_node(env.node)[RACK] == "7"
        env.show()
        env.coexistence.on_pod(pod, None)
        await asyncio.sleep(1)
        assert RACK not in objects.labels(env.node)


async def test_a_namespace_adds_few_keys_and_leaves_others_theirs(clock):
    env, changes = NodeEnvironment(clock), []
    env.coexistence.subscribe(lambda: changes.append(1))
    for number in range(300):
        keys_of_pod = frozenset(f"{number}-{n}.example.com/rack" for n in range(10))
        pod = {"metadata": {"name": "p", "namespace": "hostile"}, SPREADS: keys_of_pod}
        env.coexistence.on_pod(None, pod)

    assert len(env.coexistence.spread_over) == MOST_SPREADS
    assert len(changes) == MOST_SPREADS / 10
    other = {"metadata": {"name": "p", "namespace": "shop"}, SPREADS: frozenset({RACK})}
    env.coexistence.on_pod(None, other)
    assert RACK in env.coexistence.spread_over


async def test_an_agent_that_starts_shows_no_hidden_label_before_it_knows_all_pods(clock):
    env = NodeEnvironment(clock)
    hidden = {"metadata": {"annotations": node_labels.record({RACK: "7"})}}
    await env.server.client().patch(kinds.NODES, NAME, hidden)
    env.show()
    env.offer("1", {RACK: "7"})
    async with links.connected(env.link), background.running(env.controller.run()):
        await asyncio.sleep(1)
        assert RACK not in objects.labels(env.node)
        env.show()
        env.coexistence.pods_known()
        await asyncio.sleep(1)
        assert objects.labels(env.node)[RACK] == "7"


async def test_where_machines_have_the_role_a_virtual_node_has_it_not(clock):
    env = NodeEnvironment(clock)
    env.server.add(kinds.NODES, {"metadata": {"name": "m", "labels": {ROLE: "true"}}})
    env.offer("1")
    async with links.connected(env.link), background.running(env.controller.run()):
        await asyncio.sleep(1)

    assert ROLE not in objects.labels(env.node)


# --- a target whose summary keeps changing


@asynccontextmanager
async def shown(clock):
    """Run a controller whose store shows each write at once; inside, it has had a second."""
    async with following(clock) as env:
        env.server.store.changed.add(
            lambda kind, change: env.show(change.new) if kind is kinds.NODES else None
        )
        env.show()
        await asyncio.sleep(1)
        yield env


async def test_a_summary_that_keeps_changing_is_a_few_writes_and_the_last_one_is_shown(clock):
    async with shown(clock) as env:
        for number in range(1000):
            env.offer(f"{number}m")
            await asyncio.sleep(0.02)

        in_time = write_limits.NODES.burst + 20 * write_limits.NODES.rate
        assert 5 < len(env.writes) <= in_time + 1
        await asyncio.sleep(1 / write_limits.NODES.rate)
        assert env.node["status"]["capacity"] == {"cpu": "999m"}


async def test_labels_that_keep_changing_do_not_keep_the_status_back(clock):
    async with shown(clock) as env:
        for number in range(1000):
            env.offer(f"{number}m", {"team": str(number)})
            await asyncio.sleep(0.05)

        assert len(env.writes) < 30
        assert int(env.node["status"]["capacity"]["cpu"].rstrip("m")) > 500
        await asyncio.sleep(2 / write_limits.NODES.rate)
        assert env.node["status"]["capacity"] == {"cpu": "999m"}
        assert objects.labels(env.node)["team"] == "999"


async def test_what_an_inventory_says_is_shown_at_once(clock):
    async with following(clock) as env:
        env.show()
        description = ClusterDescription(
            {"vnode.dev/property.a": "b"}, {"vnode.dev/cluster-profile": "f/c"}
        )
        env.link.describe(description)
        await asyncio.sleep(1)
        assert objects.labels(env.node)["vnode.dev/property.a"] == "b"
        assert objects.annotations(env.node)["vnode.dev/cluster-profile"] == "f/c"
        assert objects.annotations(env.node)[keys.KUBELET_PORT] == "10251"
        writes = len(env.writes)
        env.show()
        env.link.describe(description)
        await asyncio.sleep(30)
        assert len(env.writes) == writes


async def test_the_node_declares_what_the_nodes_of_its_target_do_while_their_agent_lives(clock):
    found = node_features.NodeFeatures(
        ("Resize",), {"supplementalGroupsPolicy": True}, {"": {"userNamespaces": True}}
    )
    annotations = summary_reports.listed(
        {keys.AGENT_VERSION: "1", keys.NODE_FEATURES: node_features.encode(found)}
    )
    own = {"declaredFeatures": ["ExtendWebSocketsToKubelet"]}

    async with following(clock) as env:
        env.controller._writer._desired._server_version = "v1.36.0"

        async def declared():
            for _ in range(3):  # as often as there may be something to write
                env.show()
                await asyncio.sleep(1)

            status = objects.status(env.node)
            return {f: status[f] for f in node_features.FIELDS if status.get(f)}

        assert await declared() == own
        env.offer("1", annotations=annotations)
        everything = {
            "declaredFeatures": ["ExtendWebSocketsToKubelet", "Resize"],
            "features": {"supplementalGroupsPolicy": True},
            "runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}],
        }
        assert await declared() == everything
        count = len(env.writes)
        assert await declared() == everything
        assert len(env.writes) == count
        for silent in (False, True):  # as a heartbeat monitor says
            env.link.set_agent_silent(silent)

        assert await declared() == own
