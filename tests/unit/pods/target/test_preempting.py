"""What the candidate scheduler is answered when a delegate could preempt others."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.unit.pods.target_side import SETTLED, TargetCluster
from vnode.api import keys, kinds, objects
from vnode.api.errors import Unreachable
from vnode.pods import delegate, preemption
from vnode.pods.preemption import Victims
from vnode.pods.target import preemption_request
from vnode.pods.target.preempting import Preempting

US = {keys.PARENT_CLUSTER_UID: "uid-of-c1"}
pytestmark = pytest.mark.looptime


def pod(name, priority, **annotations):
    metadata = {"name": name, "namespace": "shop", "uid": name, "annotations": annotations}
    return {"metadata": metadata, "spec": {"priority": priority, "containers": []}}


def delegate_of(name, priority):
    found = pod(f"{name}-x", priority)
    found["metadata"]["labels"] = {keys.PARENT_UID: name}
    return found


NODES: dict[str, Any] = {
    "n1": {"Pods": [pod("a", 10), pod("b", 10)], "NumPDBViolations": 0},
    "n2": {"Pods": [delegate_of("web", 10), delegate_of("db", 5)], "NumPDBViolations": 0},
    "n3": {"Pods": [pod("c", 1)], "NumPDBViolations": 1},
}
LEAST = {"n2": {"Pods": [{"UID": "web-x"}, {"UID": "db-x"}], "NumPDBViolations": 0}}


class Asked:
    """An agent of a target with one candidate."""

    def __init__(self, clock, mark=""):
        self.clock = clock
        self.cluster = TargetCluster(clock)
        annotations = US | ({keys.PREEMPTION: mark} if mark else {})
        built = delegate.build(self.cluster.send(annotations=annotations))
        self.pod = self.cluster.server.add(kinds.PODS, built)
        agent = self.cluster.server.client("agent")
        self.preempting = Preempting(agent, self.cluster.chaperons, clock)

    async def answer(self, nodes):
        payload = json.dumps({"Pod": self.pod, "NodeNameToVictims": nodes}).encode()
        request = await preemption_request.parse(payload, self.clock)
        assert request is not None
        return (await self.preempting.answer(request))["NodeNameToMetaVictims"]

    @property
    def victims(self):
        chaperon = self.cluster.server.find(kinds.POD_CHAPERONS, "web", "shop")
        assert chaperon is not None
        return preemption.read(chaperon)

    def patches(self):
        return self.cluster.server.count("patch", kinds.POD_CHAPERONS)


async def test_a_candidate_that_asks_preempts_nobody_and_its_source_hears_of_the_least_harm(clock):
    asked = Asked(clock, preemption.ASKS)
    async with asked.cluster.informed():
        assert await asked.answer(NODES) == {}

    total = 10 + 5 + 2 * 2**31
    assert asked.victims == Victims(2, 10, total, 0, ("db", "web"))


async def test_a_source_hears_of_its_own_pods_only(clock):
    """Who is allowed to ask is not told whom others have sent."""
    asked = Asked(clock, preemption.ASKS)
    theirs = delegate_of("theirs", 10)
    theirs["metadata"]["labels"] |= {keys.PARENT_CLUSTER_NAME: "c9"}
    forged = delegate_of("forged", 10)
    forged["metadata"]["labels"] |= {keys.PARENT_CLUSTER_UID: "uid-of-c9"}
    async with asked.cluster.informed():
        await asked.answer({"n1": {"Pods": [theirs, forged, delegate_of("web", 10)]}})
        assert asked.victims.proxies == ("web",)
        assert asked.victims.pods == 3


async def test_the_same_victims_are_told_once(clock):
    asked = Asked(clock, preemption.ASKS)
    async with asked.cluster.informed():
        await asked.answer(NODES)
        await asyncio.sleep(SETTLED)
        await asked.answer(NODES)
        assert asked.patches() == 1
        await asked.answer({"n1": NODES["n1"]})
        assert asked.patches() == 2


@pytest.mark.parametrize("mark", ["", preemption.ALLOWED])
async def test_one_that_is_allowed_or_was_never_to_ask_goes_on_where_the_harm_is_least(clock, mark):
    asked = Asked(clock, mark)
    async with asked.cluster.informed():
        assert await asked.answer(NODES) == LEAST
        assert asked.victims is None


async def test_a_placeholder_preempts_nobody(clock):
    asked = Asked(clock, preemption.ALLOWED)
    async with asked.cluster.informed():
        asked.cluster.annotate(placeholder="true")
        await asyncio.sleep(SETTLED)
        assert await asked.answer(NODES) == {}
        assert asked.victims is None


@pytest.mark.parametrize("kind", ["", "ReplicaSet", "PodChaperon"])
async def test_a_pod_of_no_chaperon_preempts_nobody(clock, kind):
    """Whoever may make pods may name the candidate scheduler, which never binds them."""
    asked = Asked(clock)
    owner = {"apiVersion": "v1", "kind": kind, "name": "x", "uid": "x", "controller": True}
    metadata = {**objects.metadata(asked.pod), "ownerReferences": [owner] if kind else []}
    asked.pod = {**asked.pod, "metadata": metadata}
    async with asked.cluster.informed():
        assert await asked.answer(NODES) == {}
        assert asked.cluster.server.count("create", kinds.PODS) == 0
        chaperon = asked.cluster.server.find(kinds.POD_CHAPERONS, "web", "shop")
        assert keys.PREEMPTED not in objects.annotations(chaperon or {})


async def test_one_whose_proxy_is_here_for_good_asks_nobody(clock):
    asked = Asked(clock, preemption.ASKS)
    asked.cluster.annotate(is_allowed="true")
    async with asked.cluster.informed():
        assert await asked.answer(NODES) == LEAST


@pytest.mark.parametrize("nodes", [None, {}, {"n1": {"Pods": None}}])
async def test_without_victims_there_is_nothing_to_tell(clock, nodes):
    asked = Asked(clock, preemption.ASKS)
    async with asked.cluster.informed():
        assert await asked.answer(nodes) == {}
        assert asked.patches() == 0


async def test_nobody_is_preempted_while_the_source_cannot_be_told(clock):
    asked = Asked(clock, preemption.ASKS)
    asked.cluster.server.fail(Unreachable("late"), verb="patch", kind=kinds.POD_CHAPERONS)
    async with asked.cluster.informed():
        assert await asked.answer(NODES) == {}
        assert asked.victims is None
        assert await asked.answer(NODES) == {}
        assert asked.victims is not None


async def test_the_offer_is_for_that_chaperon_and_no_later_one_of_its_name(clock):
    asked = Asked(clock, preemption.ASKS)
    chaperon = asked.cluster.server.find(kinds.POD_CHAPERONS, "web", "shop")
    assert chaperon is not None
    asked.cluster.server.remove(kinds.POD_CHAPERONS, objects.name(chaperon), "shop")
    asked.cluster.send(annotations=US)
    async with asked.cluster.informed():
        assert await asked.answer(NODES) == {}
        assert asked.victims is None
