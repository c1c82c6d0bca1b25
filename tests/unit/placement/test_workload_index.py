"""Which policy each pod has is known once, and pods are looked at again by namespace only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import background
from tests.apiserver.links import following
from tests.apiserver.server import APIServer
from tests.computing import BusyClock
from tests.unit.placement.indexed import Nobody
from tests.unit.pods.policies import entry, spread
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.kube.informer import Informer
from vnode.placement.workload_index import WorkloadIndex
from vnode.planning.policy import Policy

pytestmark = pytest.mark.looptime

A, B = spread(entry("a")), spread(entry("b"))


class ByNamespace:
    """A policy for all pods of some namespaces; counts how often it is asked."""

    def __init__(self, **policies: Policy) -> None:
        self.policies = policies
        self.asked = 0
        self._listeners: list[Any] = []

    def __bool__(self) -> bool:
        return bool(self.policies)

    def of(self, pod: Object) -> Policy | None:
        self.asked += 1
        return self.policies.get(objects.namespace(pod))

    def subscribe(self, changed: Any) -> None:
        self._listeners.append(changed)

    def change(self, namespace: str, policy: Policy | None) -> None:
        self.policies.pop(namespace, None)
        if policy is not None:
            self.policies[namespace] = policy

        for changed in self._listeners:
            changed(namespace)


def add_pods(server: APIServer, namespace: str, count: int) -> None:
    for number in range(count):
        metadata = {"name": f"p{number}", "namespace": namespace}
        server.add(kinds.PODS, {"metadata": metadata, "spec": {"containers": []}})


@asynccontextmanager
async def indexing(
    server: APIServer, policies: ByNamespace, clock: Clock
) -> AsyncIterator[tuple[WorkloadIndex, list[str]]]:
    proxies, told = Informer(server.client(), kinds.PODS), list[str]()
    index = WorkloadIndex(proxies, Nobody(), policies, clock)
    index.subscribe(lambda pod: told.append(objects.key(pod)))
    async with following(proxies), background.running(index.run()):
        await asyncio.sleep(1)
        yield index, told


async def test_pods_of_another_namespace_are_not_looked_at(clock: Clock) -> None:
    server, policies = APIServer("c1", clock), ByNamespace(one=A, two=A)
    add_pods(server, "one", 3)
    add_pods(server, "two", 500)
    async with indexing(server, policies, clock) as (index, told):
        before = policies.asked
        policies.change("one", B)
        await index.current()
        assert policies.asked == before + 3
        assert sorted(told) == ["one/p0", "one/p1", "one/p2"]


async def test_changes_that_come_together_are_one_look(clock: Clock) -> None:
    server, policies = APIServer("c1", clock), ByNamespace(one=A)
    add_pods(server, "one", 3)
    async with indexing(server, policies, clock) as (index, told):
        before = policies.asked
        for policy in (B, A, B):
            policies.change("one", policy)

        await index.current()
        assert policies.asked == before + 3
        assert len(told) == 3


async def test_a_pod_is_known_by_its_policy_until_it_ends(clock: Clock) -> None:
    server, policies = APIServer("c1", clock), ByNamespace(one=A)
    add_pods(server, "one", 2)
    async with indexing(server, policies, clock) as (index, told):
        assert {objects.name(pod) for pod in index.pods_of(A.key)} == {"p0", "p1"}
        server.remove(kinds.PODS, "p0", "one")
        await asyncio.sleep(1)
        assert {objects.name(pod) for pod in index.planned()} == {"p1"}
        assert {objects.name(pod) for pod in index.pods_in("one")} == {"p1"}
        policies.change("one", None)
        await index.current()
        assert not [*index.planned(), *index.pods_of(A.key)]
        assert told == ["one/p1"]


async def test_nobody_waits_for_a_policy_that_is_changed_all_the_time(clock: Clock) -> None:
    server, policies, changes = APIServer("c1", clock), ByNamespace(), list[int]()
    add_pods(server, "hostile", 1)

    def change_again(_pod: Object) -> None:
        if len(changes) < 100:
            changes.append(len(changes))
            policies.change("hostile", (A, B)[len(changes) % 2])

    async with indexing(server, policies, clock) as (index, _told):
        index.subscribe(change_again)
        policies.change("hostile", A)
        await index.current()
        assert len(changes) < 5


async def test_others_have_their_turn_while_costly_pods_are_looked_at() -> None:
    turns = list[int]()

    async def take_turns() -> None:
        while True:
            turns.append(0)
            await asyncio.sleep(0)

    async with background.running(take_turns()):
        async for _ in in_slices(range(300), BusyClock()):
            pass

    assert len(turns) > 50
