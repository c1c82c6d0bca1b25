"""A target that invents chaperons, and deletes none, has its source ask for few pods."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.unit.pods.source.test_chaperon_gc import CPU, US, Clusters
from tests.unit.pods.source.test_orphans import GPU, OTHER, OrphansEnvironment, sent
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.target_key import TargetKey
from vnode.pods.source import asked_pods
from vnode.pods.source.asked_pods import AskedPods
from vnode.runtime import write_limits
from vnode.runtime.link import Link

pytestmark = pytest.mark.looptime

MINUTE = 60


def change(server: APIServer, name: str, number: int) -> None:
    def do(obj: dict[str, object]) -> None:
        objects.metadata(obj)["annotations"]["n"] = str(number)

    server.change(kinds.POD_CHAPERONS, name, "ns", do)


def keep_all(server: APIServer) -> None:
    """Have a server say that what it keeps is gone."""
    server.fail(NotFound(404, "NotFound", "gone"), verb="delete", times=None)


async def test_a_chaperon_that_stays_and_changes_has_its_pod_asked_for_now_and_then(
    clock: Clock,
) -> None:
    clusters = Clusters(clock)
    name = objects.name(clusters.send(clusters.gpu))
    keep_all(clusters.gpu)
    async with clusters.collecting():
        for number in range(10 * MINUTE):
            change(clusters.gpu, name, number)
            await asyncio.sleep(0.1)

    most = MINUTE / asked_pods.DELETED + 2
    assert 2 <= clusters.source.count("get") <= most
    assert 2 <= clusters.gpu.count("delete") <= most


async def test_one_that_another_target_sent_likewise(clock: Clock) -> None:
    env = OrphansEnvironment(clock)
    env.link()
    keep_all(env.cluster)
    env.chaperon("gone")
    async with env.collecting():
        for number in range(10 * MINUTE):
            change(env.cluster, objects.name(sent("gone")), number)
            await asyncio.sleep(0.1)

    assert 2 <= len(env.asked) <= MINUTE / asked_pods.DELETED + 2


async def test_losers_that_stay_are_asked_to_go_now_and_then(clock: Clock) -> None:
    """No pod is asked for: it is known that it is bound elsewhere."""
    clusters = Clusters(clock)
    clusters.add_pod(node=CPU.node_name)
    name = objects.name(clusters.send(clusters.gpu))
    keep_all(clusters.gpu)
    async with clusters.collecting():
        for number in range(10 * MINUTE):
            change(clusters.gpu, name, number)
            await asyncio.sleep(0.1)

    assert clusters.source.count("get") == 0
    assert 2 <= clusters.gpu.count("delete") <= MINUTE / asked_pods.DELETED + 2


async def test_targets_of_a_namespace_share_how_many_pods_are_asked_for(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_limits, "ORPHANS", write_limits.WriteLimit(10, 2.0))
    source, there = APIServer("c1", clock), APIServer("c2", clock)
    keys = GPU, OTHER, TargetKey("", "ns"), TargetKey("", "all")
    gpu, other, called_alike, every = (links.link_to(there, key, US, clock) for key in keys)
    asked = AskedPods(source.client(), clock)

    async def ask(link: Link, key: str) -> float:
        if wait := asked.wait(link, key):
            return wait

        await asked.pod(link, key)
        return 0.0

    for number in range(10):
        assert await ask(gpu, f"ns/p{number}") == 0

    assert await ask(gpu, "ns/more") == pytest.approx(0.5)
    assert await ask(other, "ns/more") == pytest.approx(1.0)
    assert await ask(called_alike, "ns/more") == await ask(every, "ns/more") == 0
    await asyncio.sleep(1)
    assert await ask(gpu, "ns/more") == await ask(other, "ns/more") == 0
    assert source.count("get") == 14


async def test_many_that_name_one_pod_have_it_asked_for_once(clock: Clock) -> None:
    clusters = Clusters(clock)
    for number in range(20):
        clusters.send(clusters.gpu, uid=f"u{number}")

    async with clusters.collecting():
        await asyncio.sleep(1)

    assert clusters.gpu.count("delete") == 20
    assert clusters.source.count("get") <= 2


async def test_a_target_that_does_not_answer_keeps_no_orphans_of_others(clock: Clock) -> None:
    env = OrphansEnvironment(clock)
    env.link()
    slow = APIServer("b", clock)
    stuck = links.link_to(slow, TargetKey("", "stuck"), US, clock, cluster_uid="b")
    env.links.add(stuck)
    for number in range(20):
        slow.add(kinds.POD_CHAPERONS, sent(f"gone-{number}"))

    async def hang(*_args: object, **_options: object) -> None:
        await asyncio.Future()

    stuck.client.discard = hang
    async with env.collecting(), background.running():
        await asyncio.sleep(5)
        env.chaperon("web")
        await env.until_left()
