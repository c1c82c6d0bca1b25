"""Placeholders and their targets: these may end them, start them, be lost, or say nothing."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.placeholder_sources import (
    SETTLED,
    WEB,
    Keeping,
    fill,
    fleet,
    overflowed,
)
from tests.unit.pods.policies import add_replicas, places
from vnode.api import keys, kinds, objects
from vnode.api.placeholders import could_start

pytestmark = pytest.mark.looptime


async def test_one_that_is_deleted_in_its_target_is_struck_off(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        (pod, *_) = source.kept_in(source.targets[0])
        source.targets[0].remove(source.targets[0].candidate(pod))
        await asyncio.sleep(SETTLED)
        assert source.waiting() == source.recorded(pods) == {"c1": 1, "c2": 2}


async def test_one_that_somebody_allowed_there_is_deleted(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        (pod, *_) = source.kept_in(source.targets[0])
        target = source.targets[0]
        target.annotate(target.candidate(pod), **{keys.IS_ALLOWED: "true"})
        await asyncio.sleep(SETTLED)
        assert target.find(pod) is None
        assert source.recorded(pods) == {"c1": 1, "c2": 2}


async def test_a_cordoned_cluster_keeps_none_and_one_that_is_lost_keeps_them(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        source.targets[0].set_healthy(False)
        await asyncio.sleep(600)
        assert source.waiting() == {"c1": 2, "c2": 2}
        source.targets[0].set_healthy(True)
        source.cordon(source.targets[1])
        await asyncio.sleep(SETTLED)
        assert source.waiting() == source.recorded(pods) == {"c1": 2}
        source.cordon(source.targets[2])
        await asyncio.sleep(SETTLED)
        assert source.waiting() == {"c1": 2}


async def test_a_target_that_is_deleted_has_none(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.keeping(clock):
        pods = await overflowed(source)
        source.links.remove(source.targets[0].link)
        source.server.remove(kinds.NODES, source.targets[0].node)
        await asyncio.sleep(SETTLED)
        assert source.recorded(pods) == {"c2": 2}


async def test_after_a_restart_they_are_known_and_marked(clock):
    source = fleet(clock, 6, 6, 14)
    async with source.running():  # its agent dies before it has marked one
        pods = add_replicas(source, 20)
        await source.until_bound(*pods)

    for target in source.targets:
        target.reconnect()

    assert not any(
        keys.PLACEHOLDER in objects.annotations(candidate)
        for target in source.targets
        for candidate in target.server.all(kinds.POD_CHAPERONS)
    )
    source = Keeping(clock, source.policy.policy, *source.targets, server=source.server)
    async with source.keeping(clock):
        await asyncio.sleep(SETTLED)
        assert source.waiting() == source.recorded(pods) == {"c1": 2, "c2": 2}
        target = source.targets[0]
        marked = [objects.annotations(target.candidate(p)) for p in source.kept_in(target)]
        assert all(keys.PLACEHOLDER in annotations for annotations in marked)


async def test_a_placeholder_that_could_start_tells_since_when(clock):
    source = fleet(clock, 6, 6, 14)
    first = source.targets[0]
    async with source.keeping(clock):
        await overflowed(source)
        openings, heard = source.keeper.openings, []
        openings.subscribe(heard.append)
        assert openings.since(WEB, first.node) is None
        began = clock.monotonic()
        first.grow(7)
        await asyncio.sleep(100)
        since = openings.since(WEB, first.node)
        assert since is not None
        assert began <= since < began + 1
        assert openings.since("deployment/default/db", first.node) is None
        assert openings.since(WEB, source.targets[1].node) is None
        first.grow(6)
        await asyncio.sleep(1)
        assert openings.since(WEB, first.node) is None
        first.grow(7)
        await asyncio.sleep(1)
        assert (openings.since(WEB, first.node) or 0) >= began + 100
        assert heard == [WEB] * 6
        for pod in source.kept_in(first):
            source.remove(pod)

        await asyncio.sleep(SETTLED)
        assert openings.since(WEB, first.node) is None


async def test_a_target_that_does_not_answer_tells_nothing(clock):
    source = fleet(clock, 6, 6, 14)
    first = source.targets[0]
    async with source.keeping(clock):
        await overflowed(source)
        first.grow(7)
        await asyncio.sleep(1)
        assert source.keeper.openings.since(WEB, first.node) is not None
        first.set_healthy(False)
        await asyncio.sleep(1)
        assert source.keeper.openings.since(WEB, first.node) is None
        healed = clock.monotonic()
        first.set_healthy(True)
        await asyncio.sleep(1)
        assert (source.keeper.openings.since(WEB, first.node) or 0) >= healed


async def test_the_place_of_a_placeholder_goes_to_the_replacement(clock):
    source = fleet(clock, 6, 6, 14)
    first = source.targets[0]
    async with source.keeping(clock):
        pods = await overflowed(source)
        (evicted, *_) = source.kept_in(first)
        source.remove(evicted)
        pods = [*(set(pods) - {evicted}), *add_replicas(source, 1, first=20)]
        await asyncio.sleep(1)
        first.grow(7)
        await source.until_bound(*pods)
        await asyncio.sleep(SETTLED)
        assert places(source, pods) == {"c1": 7, "c2": 6, "c3": 7}
        assert source.waiting() == {"c1": 1, "c2": 2}


async def test_what_users_write_as_placeholders_counts_for_nothing(clock):
    source = fill(clock, 9, 9)
    async with source.keeping(clock):
        mine = {keys.PLACEHOLDERS: source.targets[1].node}
        pods = add_replicas(source, 1, annotations=mine)
        await source.until_bound(*pods)
        assert source.recorded(pods) == {}
        source.change(pods[0], metadata={"annotations": mine})
        await asyncio.sleep(SETTLED)
        assert source.recorded(pods) == {}


def chaperon(*, annotations=None, reason=None, message=""):
    """Return the chaperon of a placeholder, as its target reports it."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    status = {"conditions": [condition]} if reason else {}
    return {"metadata": {"annotations": annotations or {}}, "status": status}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (chaperon(), None),
        (chaperon(reason="Unschedulable", message="no room"), False),
        (chaperon(reason="SchedulerError", message=f"bind: ns/p {keys.COULD_START}"), True),
        (chaperon(reason="SchedulerError", message="etcd is slow"), None),
        (chaperon(reason="Unschedulable", annotations={keys.IS_RESERVED: "true"}), True),
        (chaperon(annotations={keys.POD_MISSING_SINCE: "now", keys.IS_RESERVED: "true"}), False),
        ({"metadata": {"deletionTimestamp": "now"}}, False),
    ],
)
async def test_what_a_target_says_of_a_placeholder(found, expected):
    assert could_start(found) is expected
