"""A target that answers again is first told which of its pods are to end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.permitted import all_namespaces
from tests.unit.pods.bound_pods import RUNNING, BoundPodsEnvironment
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import ServerError
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.kube.store import Store
from vnode.pods.source.event_handlers import EventHandlers
from vnode.pods.source.returned_targets import ReturnedTargets
from vnode.runtime.link_health import UNREACHABLE, LinkHealth
from vnode.runtime.links import Links
from vnode.scheduling.cache import Cache

pytestmark = pytest.mark.looptime

PODS = ("a", "b", "c")


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock)


async def lose(env: BoundPodsEnvironment) -> list[int]:
    """Have pods deleted while their target is out of reach; how many ends it knows of when told."""
    ends: list[int] = []
    returned = env.controller.returned
    returned.subscribe(lambda _node: ends.append(env.target.writes.count(("delete", ""))))
    env.target.set_answering(False)
    for name in PODS:
        await env.delete(name)

    await asyncio.sleep(100)
    assert env.target.node not in returned
    return ends


async def test_it_is_told_of_all_pods_that_are_to_end_before_others_go_there(
    env: BoundPodsEnvironment,
) -> None:
    for name in (*PODS, "stays"):
        env.target.add(env.add(name), **RUNNING)

    async with env.running():
        ends = await lose(env)
        env.target.set_answering(True)
        assert env.target.node in env.controller.returned
        await asyncio.sleep(1)
        assert ends == [len(PODS)]
        assert env.target.node not in env.controller.returned


async def test_a_request_that_fails_keeps_others_away_once_only(env: BoundPodsEnvironment) -> None:
    for name in PODS:
        env.target.add(env.add(name), **RUNNING)

    async with env.running():
        ends = await lose(env)
        env.target.server.fail(ServerError(500, "", "no leader"), verb="delete", times=2)
        env.target.set_answering(True)
        await asyncio.sleep(10)
        assert len(ends) == 1
        assert env.target.server.count("delete", kinds.POD_CHAPERONS) == len(PODS) + 2


async def test_a_reconciliation_that_can_tell_nothing_does_not_count(
    env: BoundPodsEnvironment,
) -> None:
    """As while the target's chaperons are listed again."""
    for name in PODS:
        env.target.add(env.add(name), **RUNNING)

    async with env.running():
        ends = await lose(env)
        listed = env.target.link.chaperons.synced
        listed.clear()
        env.target.set_answering(True)
        await asyncio.sleep(5)
        assert env.target.node in env.controller.returned
        assert ends == []
        listed.set()
        env.controller._add_pods_on(env.target.node)
        await asyncio.sleep(1)
        assert ends == [len(PODS)]


async def test_a_target_whose_pods_all_stay_is_not_waited_for(env: BoundPodsEnvironment) -> None:
    env.target.add(env.add(), **RUNNING)
    async with env.running():
        env.target.set_answering(False)
        await asyncio.sleep(100)
        env.target.set_answering(True)
        assert env.target.node not in env.controller.returned


async def test_no_pod_is_sent_to_a_target_that_has_yet_to_be_told(clock: Clock) -> None:
    link = links.link_to(APIServer("c2", clock), TargetKey("ns", "c2"), Identity("c1", "us"), clock)
    known, node = Links(), {"metadata": {"name": link.node_name}, "spec": {}, "status": {}}
    known.add(link)
    store = Store()
    store.put(node)
    nodes: Any = SimpleNamespace(store=store, subscribe=lambda _handler: None)
    woken: list[str] = []
    queue: Any = SimpleNamespace(move=lambda event: woken.append(event.kind.name))
    cache, returned = Cache(), ReturnedTargets()
    handlers = EventHandlers(nodes, all_namespaces(), known, cache, queue)
    handlers.open()
    handlers.await_ends(returned)
    link.on_health(lambda: returned.observe(link, lambda: ["shop/a"]))

    def why_not() -> str:
        (info,) = cache.snapshot().nodes
        assert info.virtual.healthy is not bool(info.virtual.unhealthy_reason)
        return info.virtual.unhealthy_reason

    async with links.connected(link):
        for answers, reason in ((False, UNREACHABLE), (True, "Ready")):
            link.set_health(LinkHealth(answers, reason, "no answer", clock.now()))

        handlers._update(link.node_name)
        assert "told to end first" in why_not()
        woken.clear()
        returned.reconciled("shop/a")
        assert why_not() == ""
        assert woken == ["TARGET_HEALTH"]
