"""Others are preempted for a delegate: their room is kept, and the rounds are bounded."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.unit.pods.target_side import NAMESPACE, SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, Unreachable
from vnode.pods import preemption
from vnode.pods.preemption import PAUSE, Rounds
from vnode.pods.target import nominations, preemption_request
from vnode.pods.target.preempting import Preempting

pytestmark = pytest.mark.looptime

RESOURCES = {"requests": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2"}}
SPEC = {
    "schedulerName": keys.CANDIDATE_SCHEDULER,
    "priorityClassName": "high",
    "serviceAccountName": "web",
    "nodeSelector": {"zone": "a"},
    "containers": [
        {
            "name": "main",
            "image": "registry.example.com/web:1",
            "resources": RESOURCES,
            "ports": [
                {"name": "http", "containerPort": 80},
                {"name": "peers", "containerPort": 7, "hostPort": 7},
            ],
        }
    ],
}


class Preemptor:
    """An agent of a target, its candidate scheduler, and one delegate that may preempt."""

    def __init__(self, clock):
        self.clock = clock
        self.cluster = TargetCluster(clock)
        agent = self.cluster.server.client("agent")
        self.chaperon = self.cluster.send(
            spec=SPEC, annotations={keys.PREEMPTION: preemption.ALLOWED}
        )
        self.preempting = Preempting(agent, self.cluster.chaperons, clock)

    async def asks(self, *nodes):
        """Ask for permission to preempt one pod on one of these nodes; return where it may."""
        victims = {
            node: {"Pods": [{"metadata": {"name": f"on-{node}", "namespace": "x", "uid": node}}]}
            for node in nodes
        }
        pod = self.cluster.pod()
        payload = json.dumps({"Pod": pod, "NodeNameToVictims": victims}).encode()
        request = await preemption_request.parse(payload, self.clock)
        assert request is not None
        answer = await self.preempting.answer(request)
        await asyncio.sleep(SETTLED)
        return set(answer["NodeNameToMetaVictims"])

    @property
    def nominated(self):
        """The nominated pod; empty if there is none."""
        name = nominations.name_of(objects.uid(self.chaperon))
        return self.cluster.server.find(kinds.PODS, name, NAMESPACE) or {}

    @property
    def room(self):
        """The node on which room is kept; None if none is."""
        return objects.status(self.nominated).get("nominatedNodeName")

    def bind(self):
        binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
        self.cluster.server.writer.bind(f"{NAMESPACE}/web", binding)


@pytest.fixture
async def preemptor(clock):
    preemptor = Preemptor(clock)
    async with preemptor.cluster.running():
        await preemptor.cluster.until(preemptor.cluster.pod)
        await asyncio.sleep(SETTLED)
        yield preemptor


async def test_a_pod_as_large_and_as_important_is_nominated_before_the_victims_go(preemptor):
    assert await preemptor.asks("n1", "n2") == {"n1"}
    assert preemptor.room == "n1"
    spec = objects.spec(preemptor.nominated)
    (container,) = spec["containers"]
    assert container["resources"]["requests"] == RESOURCES["requests"]
    assert container["resources"]["limits"] == RESOURCES["requests"]  # devices need them
    assert container["ports"] == [{"containerPort": 7, "hostPort": 7}]
    assert spec["priorityClassName"] == "high"
    assert spec["schedulerName"] == "default-scheduler"
    assert "nodeSelector" not in spec


async def test_it_can_neither_start_nor_be_taken_for_a_delegate_or_a_proxy(preemptor):
    await preemptor.asks("n1")
    nominated = preemptor.nominated
    assert objects.spec(nominated)["schedulingGates"] == [{"name": keys.NOMINATED}]
    assert objects.labels(nominated) == {}
    assert keys.NO_ELECT in objects.annotations(nominated)
    assert objects.controller_uid(nominated) == ""
    (owner,) = objects.metadata(nominated)["ownerReferences"]
    assert owner["uid"] == objects.uid(preemptor.chaperon)


async def test_it_goes_once_the_delegate_has_a_node(preemptor):
    await preemptor.asks("n1")
    preemptor.bind()
    await asyncio.sleep(SETTLED)
    assert not preemptor.nominated
    assert preemption.rounds(preemptor.cluster.chaperon()).count == 1
    deleted = preemptor.cluster.count("delete", "pods")
    preemptor.cluster.report(phase="Running", containerStatuses=[{"name": "main"}])
    await asyncio.sleep(SETTLED)
    assert preemptor.cluster.count("delete", "pods") == deleted


async def test_it_goes_once_the_scheduler_has_given_up_the_node(preemptor):
    await preemptor.asks("n1")
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    preemptor.cluster.report(nominatedNodeName="n1", conditions=[waits])
    await asyncio.sleep(SETTLED)
    assert preemptor.room == "n1"
    preemptor.cluster.report(nominatedNodeName=None)
    await asyncio.sleep(SETTLED)
    assert not preemptor.nominated


async def test_it_moves_with_the_second_round_and_there_is_no_third_before_a_pause(preemptor):
    assert await preemptor.asks("n1") == {"n1"}
    assert await preemptor.asks("n2") == {"n2"}
    assert preemptor.room == "n2"
    assert await preemptor.asks("n1") == set()
    await asyncio.sleep(PAUSE.total_seconds())
    assert await preemptor.asks("n1") == {"n1"}
    await asyncio.sleep(PAUSE.total_seconds())
    assert await preemptor.asks("n1") == set()
    await asyncio.sleep(PAUSE.total_seconds())
    assert await preemptor.asks("n1") == {"n1"}


async def test_rounds_for_other_candidates_of_the_pod_count(clock):
    preemptor = Preemptor(clock)
    earlier = {keys.PREEMPTED: Rounds(2, int(clock.now().timestamp())).encode()}
    preemptor.cluster.server.change(
        kinds.POD_CHAPERONS,
        "web",
        NAMESPACE,
        lambda chaperon: chaperon["metadata"]["annotations"].update(earlier),
    )
    async with preemptor.cluster.running():
        await preemptor.cluster.until(preemptor.cluster.pod)
        await asyncio.sleep(SETTLED)
        assert await preemptor.asks("n1") == set()


async def test_where_no_such_pod_is_allowed_the_delegate_goes_on_without(preemptor):
    preemptor.cluster.server.fail(
        Denied(403, "Forbidden", "exceeded quota"), verb="create", kind=kinds.PODS
    )
    assert await preemptor.asks("n1") == {"n1"}
    assert not preemptor.nominated
    preemptor.bind()
    await asyncio.sleep(SETTLED)
    assert preemption.rounds(preemptor.cluster.chaperon()).node == ""


async def test_a_delegate_is_reported_though_its_nominated_pod_stays(preemptor):
    await preemptor.asks("n1")
    preemptor.cluster.server.fail(Denied(403, "Forbidden", "no"), verb="delete", kind=kinds.PODS)
    preemptor.bind()
    await asyncio.sleep(SETTLED)
    assert preemptor.nominated
    preemptor.cluster.report(phase="Running", containerStatuses=[{"name": "main"}])
    await asyncio.sleep(SETTLED)
    assert objects.status(preemptor.cluster.chaperon())["phase"] == "Running"
    assert not preemptor.nominated  # the next time


async def test_nobody_is_preempted_unless_that_is_noted(preemptor):
    preemptor.cluster.server.fail(Unreachable("late"), verb="patch", kind=kinds.POD_CHAPERONS)
    assert await preemptor.asks("n1") == set()
    assert not preemptor.nominated


async def test_a_note_that_cannot_be_read_counts_as_none():
    for text in ("", "{", "[]", '{"count": -1}', '{"count": "1"}', "x" * 100_000):
        chaperon = {"metadata": {"annotations": {keys.PREEMPTED: text}}}
        assert preemption.rounds(chaperon) == preemption.NO_ROUNDS
