"""`vnode migrate --back`: nothing waits for the vnode that has gone, and nothing of it counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

import pytest

from tests import background
from tests.apiserver.faults import RequestFault
from tests.apiserver.server import APIServer
from vnode.api import errors, keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.cli.migration import left_pods
from vnode.cli.migration.back import BackOptions, prepare
from vnode.cli.remove.report import RemovalReport
from vnode.kube.client import Client
from vnode.runtime.leader import AGENT_LEASE

pytestmark = pytest.mark.looptime

GPU = TargetKey("ns", "gpu")
GATE: Final[Object] = {"name": keys.AWAITS_STATE}
GROUP = keys.PREFIX + "v1alpha1"


class LeftFederation:
    """A source and a target in which vnode was stopped."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.source, self.target = APIServer("c1", clock), APIServer("gpu", clock)
        self.lines: list[str] = []
        self.report = RemovalReport(self.lines.append)
        self.reachable = True
        for server, uid in ((self.source, "us"), (self.target, "there")):
            for name in ("ns", "vnode"):
                server.add(kinds.NAMESPACES, {"metadata": {"name": name}})

            server.add(kinds.NAMESPACES, {"metadata": {"name": "kube-system", "uid": uid}})

        metadata = {"name": GPU.name, "namespace": GPU.namespace}
        self.source.add(kinds.TARGETS, {"metadata": metadata, "spec": {}})
        self.summarise(self.source, "c1", "us")

    def summarise(self, server: APIServer, name: str, uid: str, age: float = 600.0) -> None:
        beat = objects.timestamp(self.clock.now() - timedelta(seconds=age))
        annotations = {
            keys.AGENT_VERSION: "1",
            keys.HEARTBEAT: beat,
            keys.CLASSES: "{}",
            keys.NODE_FEATURES: "{}",
            keys.FREE_RESOURCES: "{}",
            keys.CLUSTER_NAME: name,
            keys.CLUSTER_UID: uid,
            "kubectl.kubernetes.io/note": "kept",
        }
        metadata = {"name": keys.SUMMARY_NAME, "annotations": annotations}
        server.add(kinds.CLUSTER_SUMMARIES, {"metadata": metadata, "allocatable": {"cpu": "4"}})

    def add_chaperon(self, name: str = "web", cluster: str = "us") -> str:
        """Store a chaperon of vnode's in the target, and its delegate; return the name."""
        labels = {keys.PARENT_UID: name, keys.PARENT_CLUSTER_NAME: "c1"}
        annotations = {
            keys.PARENT_NAMESPACE: "ns",
            keys.PARENT_NAME: name,
            keys.PARENT_CLUSTER_UID: cluster,
        }
        metadata = {
            "name": names.chaperon(name, name),
            "namespace": "ns",
            "uid": f"chaperon-of-{name}",
            "labels": labels,
            "annotations": annotations,
        }
        held = {**metadata, "finalizers": [keys.DELEGATE_FINALIZER]}
        self.target.add(kinds.POD_CHAPERONS, {"metadata": held, "spec": {}})
        owner = {
            "apiVersion": GROUP,
            "kind": "PodChaperon",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        pod = {**metadata, "uid": f"delegate-of-{name}", "ownerReferences": [owner]}
        self.target.add(kinds.PODS, {"metadata": pod, "spec": {"nodeName": "n"}})
        return str(metadata["name"])

    def add_proxy(self, name: str = "web", **spec: Any) -> None:
        metadata = {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "finalizers": [GPU.finalizer],
        }
        own = {
            "schedulerName": keys.PROXY_SCHEDULER,
            "nodeName": GPU.node_name,
            "terminationGracePeriodSeconds": 30,
        }
        spec = {k: v for k, v in {**own, **spec}.items() if v is not None}
        self.source.add(kinds.PODS, {"metadata": metadata, "spec": spec})

    def let_go(self, name: str = "web") -> None:
        """Take Admiralty's finalizer off, as it does once the chaperon is gone."""
        self.source.change(kinds.PODS, name, "ns", lambda pod: pod["metadata"].pop("finalizers"))

    @asynccontextmanager
    async def connect(self, _local: Client, _target: Object) -> AsyncIterator[Client]:
        if not self.reachable:
            raise Unreachable("no answer")

        yield self.target.client("source")

    async def go_back(self, server: APIServer, name: str | None = None) -> None:
        options = BackOptions("vnode", 5.0, name)
        await prepare(server.client(), options, self.report, self.clock, self.connect)

    def finalizers(self, name: str) -> list[str]:
        return objects.finalizers(self.target.find(kinds.POD_CHAPERONS, name, "ns") or {})


@pytest.fixture
async def left(clock: Clock) -> LeftFederation:
    return LeftFederation(clock)


async def test_a_target_is_no_longer_taken_for_one_with_vnode(left: LeftFederation) -> None:
    left.summarise(left.target, "gpu", "there")
    held = left.add_chaperon()
    await left.go_back(left.target)
    summary = left.target.find(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME) or {}
    assert objects.annotations(summary) == {
        keys.CLUSTER_NAME: "gpu",
        keys.CLUSTER_UID: "there",
        "kubectl.kubernetes.io/note": "kept",
    }
    assert left.finalizers(held) == []
    assert left.target.find(kinds.PODS, held, "ns")
    assert left.report.left == []
    before = len(left.target.received("patch"))
    await left.go_back(left.target)
    assert len(left.target.received("patch")) == before


async def test_a_chaperon_that_arrives_late_is_released_as_well(left: LeftFederation) -> None:
    left.add_chaperon()

    async def send() -> None:
        await asyncio.sleep(1.0)
        left.add_chaperon("late")

    async with background.running(_forever(send())):
        await left.go_back(left.target)

    assert left.finalizers(names.chaperon("late", "late")) == []


async def _forever(first: Any) -> None:
    await first
    await asyncio.Event().wait()


async def test_sources_and_what_they_let_in_stay(left: LeftFederation) -> None:
    left.target.add(kinds.SOURCES, {"metadata": {"name": "c1", "namespace": "ns"}})
    left.target.add(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "c1", "namespace": "ns"}})
    await left.go_back(left.target)
    assert left.target.received("delete", kinds.SOURCES) == []
    assert left.target.find(kinds.SERVICE_ACCOUNTS, "c1", "ns")


async def test_a_deleted_pod_ends_although_vnode_left_its_target_unprepared(
    left: LeftFederation,
) -> None:
    held = left.add_chaperon()
    await left.target.client().delete(kinds.POD_CHAPERONS, held, "ns")
    assert left.target.find(kinds.POD_CHAPERONS, held, "ns")
    await left.go_back(left.source)
    assert left.target.find(kinds.POD_CHAPERONS, held, "ns") is None
    assert "target ns/gpu: released 1 PodChaperon" in left.lines


async def test_chaperons_of_another_source_are_not_touched(left: LeftFederation) -> None:
    held = left.add_chaperon(cluster="another")
    await left.go_back(left.source)
    assert left.finalizers(held) == [keys.DELEGATE_FINALIZER]


async def test_where_the_target_runs_vnode_its_agent_ends_the_pods(left: LeftFederation) -> None:
    left.summarise(left.target, "gpu", "there", age=30.0)
    held = left.add_chaperon()
    await left.go_back(left.source)
    assert left.finalizers(held) == [keys.DELEGATE_FINALIZER]
    assert "target ns/gpu: runs vnode, which ends its delegate pods" in left.lines


async def test_a_target_that_does_not_answer_is_left_and_named(left: LeftFederation) -> None:
    left.reachable = False
    await left.go_back(left.source)
    [line] = left.report.left
    assert line.startswith("target ns/gpu: no answer; run this again")


async def test_what_was_sent_gets_the_name_that_admiralty_gives_the_cluster(
    left: LeftFederation,
) -> None:
    left.add_proxy()
    held = left.add_chaperon()
    metadata = {"name": "web", "namespace": "ns", "uid": "web"}
    left.source.add(kinds.CONFIG_MAPS, {"metadata": metadata})
    labels = {keys.PARENT_UID: "web", keys.PARENT_CLUSTER_NAME: "c1"}
    copy = {"name": "web", "namespace": "ns", "labels": labels}
    left.target.add(kinds.CONFIG_MAPS, {"metadata": copy})
    await left.go_back(left.source, name="")
    for kind, name in ((kinds.POD_CHAPERONS, held), (kinds.CONFIG_MAPS, "web")):
        found = left.target.find(kind, name, "ns") or {}
        assert objects.labels(found)[keys.PARENT_CLUSTER_NAME] == ""


async def test_a_pod_that_waits_behind_a_gate_of_vnodes_is_scheduled(left: LeftFederation) -> None:
    gates = [{"name": keys.AWAITS_STATE}, {"name": "example.com/other"}]
    left.add_proxy(nodeName=None, schedulingGates=gates)
    await left.go_back(left.source)
    spec = objects.spec(left.source.find(kinds.PODS, "web", "ns") or {})
    assert spec["schedulingGates"] == [{"name": "example.com/other"}]


def lease(left: LeftFederation) -> Object:
    spec = {
        "holderIdentity": "agent-0",
        "leaseDurationSeconds": 15,
        "renewTime": objects.micro_timestamp(left.clock.now()),
    }
    return {"metadata": {"name": AGENT_LEASE, "namespace": "vnode"}, "spec": spec}


async def test_nothing_is_done_while_an_agent_leads(left: LeftFederation) -> None:
    left.source.add(kinds.LEASES, lease(left))

    def renewed(obj: Object) -> None:
        obj["spec"] = lease(left)["spec"]

    async def renew() -> None:
        while True:
            await asyncio.sleep(5)
            left.source.change(kinds.LEASES, AGENT_LEASE, "vnode", renewed)

    async with background.running(renew()):
        with pytest.raises(ConfigError, match="agent agent-0 is running"):
            await left.go_back(left.source)

    assert left.source.received("patch") == []


async def test_the_lease_of_an_agent_that_could_not_give_it_up_runs_out(
    left: LeftFederation,
) -> None:
    left.source.add(kinds.LEASES, lease(left))
    await left.go_back(left.source)
    assert left.lines[0] == "waiting until the lease of agent-0 is over"
    assert left.report.left == []


async def test_the_webhook_that_nobody_answers_goes(left: LeftFederation) -> None:
    left.source.add(kinds.MUTATING_WEBHOOKS, {"metadata": {"name": "vnode"}})
    await left.go_back(left.source)
    assert left.source.find(kinds.MUTATING_WEBHOOKS, "vnode") is None


async def test_a_pod_that_admiralty_has_let_go_ends_once_its_grace_period_is_over(
    left: LeftFederation,
) -> None:
    """A StatefulSet would wait for it for ever."""
    left.add_proxy()
    await left.source.client().delete(kinds.PODS, "web", "ns")
    await left.go_back(left.source)
    assert left.source.find(kinds.PODS, "web", "ns")  # its delegate may run
    left.let_go()
    await left.go_back(left.source)
    assert left.source.find(kinds.PODS, "web", "ns")  # and end
    await asyncio.sleep(31)
    await left.go_back(left.source)
    assert left.source.find(kinds.PODS, "web", "ns") is None
    assert "deleted 1 pod that Admiralty had let go" in left.lines


async def test_whoever_watches_sees_the_pods_that_vnode_admitted_to_their_end(
    left: LeftFederation,
) -> None:
    for name in ("a", "b"):
        left.add_proxy(name)

    left.add_proxy("admiraltys", terminationGracePeriodSeconds=0)
    task = asyncio.create_task(left_pods.finish_all(left.source.client(), left.clock, left.report))
    for name in ("a", "b"):
        await asyncio.sleep(100)
        assert not task.done()
        await left.source.client().delete(kinds.PODS, name, "ns")
        left.let_go(name)
        await asyncio.sleep(29)
        assert left.source.find(kinds.PODS, name, "ns")
        await asyncio.sleep(15)
        assert left.source.find(kinds.PODS, name, "ns") is None

    await asyncio.wait_for(task, 1)
    assert left.source.find(kinds.PODS, "admiraltys", "ns")


async def test_a_gate_of_a_pod_that_changes_meanwhile_is_left_for_the_next_run(
    left: LeftFederation,
) -> None:
    for name in ("web-0", "web-1"):
        gated = {"schedulerName": keys.PROXY_SCHEDULER, "schedulingGates": [GATE]}
        left.source.add(kinds.PODS, {"metadata": {"name": name, "namespace": "ns"}, "spec": gated})

    changed = errors.from_status(HTTPStatus.CONFLICT, "Conflict", "it has changed")
    left.source.faults.add(RequestFault(changed, "patch", kinds.PODS))
    await left_pods.open_gates(left.source.client(), left.report)
    assert left.report.left == ["pod/ns/web-0 has changed meanwhile and waits: run this again"]
    assert left.lines == ["opened the scheduling gate of 1 pod"]
