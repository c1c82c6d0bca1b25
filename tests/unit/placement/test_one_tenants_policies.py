"""What one tenant's policies and pods cost when something changes makes no step of the loop long.

Policies are as large as their schema allows. Times are of the processor, far from the bound on
both sides, as what is measured grows with a loop that does not stop in between.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from tests import background, computing, decisions
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.computing import WorkingClock
from tests.decisions import OCM, of_placement
from tests.unit.placement.environment import PlacementEnvironment
from tests.unit.placement.indexed import indexed
from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment
from tests.unit.pods.policies import Fixed, entry, spread
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.placement.deletion_costs import DeletionCosts
from vnode.placement.policies import decoding
from vnode.scheduling.cache import Cache

pytestmark = pytest.mark.looptime

LONGEST: Final = 0.05
"""Seconds that a callback may compute."""
POLICIES: Final = 200
"""As many as one namespace may have."""


def costly(number: int) -> Object:
    """Build a policy whose entries are long to compare with a node, and select none."""
    absent = [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(30)]
    wanted = [{"key": "never", "operator": "Exists"}]
    selector = {"matchExpressions": absent + wanted}
    spec: dict[str, Any] = {
        "mode": "Spread",
        "targets": [{"selector": selector} for _ in range(100)],
        "reschedule": {"when": ["LabelsChanged"]},
    }
    return {"metadata": {"namespace": "default", "name": f"p{number}"}, "spec": spec}


def mark(server: APIServer, node: str) -> None:
    """Give a Node another label."""
    server.change(kinds.NODES, node, "", lambda obj: obj["metadata"].update(labels={"a": "c"}))


async def test_a_node_that_changes_has_policies_looked_at_in_steps(clock: Clock) -> None:
    room = FrankRoom("c1", clock, 1)
    env = MovingEnvironment(WorkingClock(clock), spread(entry(room.node)), room)
    decoded = decoding.decode(costly(0))
    env.policy.others = {f"default/p{n}": (decoded, {}) for n in range(POLICIES)}
    for number in range(20):
        env.server.add(kinds.NODES, {"metadata": {"name": f"n{number}", "labels": {"a": "b"}}})

    async with env.leading():
        await asyncio.sleep(10)
        with computing.steps() as steps:
            mark(env.server, "n3")
            await asyncio.sleep(10)

    assert max(steps) < LONGEST
    assert sum(steps) > 2 * LONGEST, "they were not looked at"


async def test_a_node_that_changes_has_pods_of_plans_looked_at_in_steps(clock: Clock) -> None:
    server, slow = APIServer("source", clock), WorkingClock(clock)
    server.add(kinds.NODES, {"metadata": {"name": "n"}})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"}
    head = {"namespace": "default", "ownerReferences": [owner | {"controller": True}]}
    for number in range(12_000):
        pod = {"metadata": head | {"name": f"p{number}"}, "spec": {"nodeName": ""}}
        server.add(kinds.PODS, pod)

    policies, client = Fixed(spread()), server.client()
    proxies, nodes = Informer(client, kinds.PODS), Informer(client, kinds.NODES)
    index = indexed(proxies, policies, slow)
    costs = DeletionCosts(client, proxies, nodes, Cache(), policies, index, slow)
    async with links.following(proxies, nodes), background.running(index.run(), costs.run()):
        await asyncio.sleep(10)
        with computing.steps() as steps:
            mark(server, "n")
            await asyncio.sleep(10)

    assert max(steps) < LONGEST
    assert sum(steps) > LONGEST, "they were not looked at"


async def test_a_target_that_changes_has_policies_judged_in_steps(clock: Clock) -> None:
    env = PlacementEnvironment(WorkingClock(clock), "a")
    spec = {**costly(0)["spec"], "clusters": {"names": ["absent"]}}
    for number in range(POLICIES):
        env.add_policy(f"p{number}", **spec)

    async with env.running():
        with computing.steps() as steps:
            env.add_target("b", "default")
            await asyncio.sleep(20)
            env.add_target("absent")
            await asyncio.sleep(20)

        assert len(env.policies.in_force()) == POLICIES

    assert max(steps) < LONGEST


async def test_a_decision_that_changes_has_policies_judged_in_steps(clock: Clock) -> None:
    env = PlacementEnvironment(WorkingClock(clock), "a")
    env.server.add(kinds.CRDS, decisions.established(OCM))
    env.server.add(OCM, of_placement("web", *(f"c{number}" for number in range(3000))))
    reference = decisions.reference(OCM, "web")
    for number in range(POLICIES):
        selector = {"matchLabels": {"app": f"web-{number}"}}
        env.add_policy(f"p{number}", selector=selector, clusters={"decisionRef": reference})

    [slice_] = map(objects.name, env.server.all(OCM))
    async with env.running():
        with computing.steps() as steps:
            env.server.change(OCM, slice_, "default", lambda obj: obj["status"]["decisions"].pop())
            await asyncio.sleep(20)

        found = {len(p.decision.clusters) for p in env.policies.in_force().values() if p.decision}
        assert found == {2999}
    assert max(steps) < LONGEST
