"""What keeps a copy from its pods: objects of others, and targets that refuse or do not answer."""

from __future__ import annotations

import asyncio
import math

import pytest

from tests.apiserver.server import APIServer
from tests.unit.following.follower_world import (
    MAP,
    N1,
    content,
    ensure,
    labelled,
    refused,
    world,
)
from vnode.api import keys, kinds
from vnode.api.errors import ConfigError, Conflict, Denied, Invalid, Unreachable
from vnode.following.follower import TIMEOUT
from vnode.following.reference_index import Key
from vnode.following.writing import RECHECK
from vnode.runtime.links import LinkHealth

__all__ = ["world"]

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    "error", [Denied(403, "Forbidden", "no way"), Invalid(422, "Invalid", "no way")]
)
async def test_a_target_that_lets_nobody_label_has_the_pod_all_the_same(world, error):
    await ensure(world)
    world.family.body = labelled(app="x")
    world.fail("update", error)
    assert await ensure(world) == ""
    assert world.messages == ["labels of ConfigMap m cannot follow to target n1: no way"]


async def test_a_copy_stays_when_the_target_does_not_take_what_it_should_be(world):
    await ensure(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.fail("update", refused(immutable=False))
    with pytest.raises(ConfigError, match="ConfigMap m cannot follow to target n1: no way"):
        await ensure(world)

    assert world.holds == ["now"]
    assert world.messages == ["ConfigMap m cannot follow to target n1: no way"]
    await asyncio.sleep(RECHECK + 0.1)
    assert world.holds == ["later"]


async def test_nothing_is_done_before_the_list_of_copies_is_complete(world):
    world.server.fail(None, verb="list", delay=math.inf, times=None)
    with pytest.raises(Unreachable, match=f"{TIMEOUT:g} s"):
        await ensure(world)

    assert world.calls == []


@pytest.mark.parametrize(
    "theirs", [{}, {keys.PARENT_CLUSTER_NAME: "c9"}, {"labelled": "otherwise"}]
)
async def test_what_is_not_ours_is_left_alone_and_said(world, theirs):
    world.put(content("theirs", uid="foreign", labels=theirs))
    assert "not from this cluster" in await ensure(world)
    assert "not from this cluster" in await ensure(world)
    assert world.calls == ["create", "get"]
    assert world.holds == ["theirs"]
    assert len(world.messages) == 1


async def test_a_copy_of_an_earlier_original_that_holds_data_is_left_alone_and_said(world):
    await ensure(world)
    world.family.body = content("later", uid="again", resourceVersion="6")
    world.family.replaces = lambda _copy, _original: False
    assert "is that of an earlier one of this name" in await ensure(world)
    assert "parent-uid=original" in await ensure(world)
    assert world.calls == ["create"]
    assert world.holds == ["now"]
    assert len(world.messages) == 1
    world.family.replaces = lambda _copy, _original: True  # somebody has given it the label
    await ensure(world)
    assert world.holds == ["later"]


async def test_what_is_not_ours_but_the_same_is_not_worth_a_word(world):
    world.put(content("now", uid="foreign"))
    assert await ensure(world) == ""
    assert world.messages == []


async def test_what_was_in_the_way_in_a_cluster_is_made_in_the_one_that_replaces_it(world):
    world.put(content("now", uid="foreign"))
    await ensure(world)
    replacing = APIServer("c3", world.clock)
    replacing.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
    world.links.remove(world.links.get(N1))
    world.connect("n1", server=replacing)
    await ensure(world)
    assert replacing.find(kinds.CONFIG_MAPS, "m", "ns")


async def test_a_copy_of_another_cluster_of_our_name_is_not_ours(world):
    labels = {keys.PARENT_CLUSTER_NAME: "c1"}
    annotations = {keys.PARENT_CLUSTER_UID: "another"}
    world.put(content("theirs", labels=labels, annotations=annotations))
    assert "not from this cluster" in await ensure(world)
    assert world.holds == ["theirs"]


async def test_a_target_that_is_the_source_needs_nothing(world):
    world.put(content("now", uid="original"))
    assert await ensure(world) == ""
    assert world.calls == ["create", "get"]


@pytest.mark.parametrize("verb", ["create", "list"])
async def test_missing_rights_are_explained(world, verb):
    world.server.fail(Denied(403, "Forbidden", "no way"), verb=verb, times=None)
    link = world.connect("n3")
    await asyncio.sleep(1)
    with pytest.raises(ConfigError, match=r"may not follow to target n3: no way; .*configMapsAnd"):
        await ensure(world, link.node_name)


async def test_a_conflict_is_tried_again_for_whoever_waits(world):
    world.fail("create", Conflict(409, "Conflict", "changed"))
    assert await ensure(world) == ""
    assert world.holds == ["now"]


async def test_a_target_that_does_not_answer_is_said_at_once(world):
    world.fail("create", Unreachable("away"))
    with pytest.raises(Unreachable, match="away"):
        await ensure(world)

    link = world.links.get(N1)
    link.set_health(LinkHealth(False, "Unreachable", "for long", world.clock.now()))
    with pytest.raises(Unreachable, match="for long"):
        await ensure(world)


async def test_one_without_a_connection_is_said_too(world):
    with pytest.raises(Unreachable, match="not connected"):
        await world.follower.ensure([Key("n9", MAP)])
