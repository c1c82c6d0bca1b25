"""What keeps a copy from its pods: objects of others, and targets that refuse or do not answer."""

from __future__ import annotations

import asyncio
import math

import pytest

from tests.apiserver.server import APIServer
from tests.unit.following.follower_environment import (
    MAP,
    N1,
    content,
    ensure,
    env,
    labelled,
    refused,
)
from vnode.api import keys, kinds
from vnode.api.errors import (
    ConfigError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    NotGranted,
    Unreachable,
)
from vnode.following.follower import TIMEOUT
from vnode.following.reference_index import Key
from vnode.following.writing import RECHECK
from vnode.runtime.link_health import LinkHealth

__all__ = ["env"]

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    "error", [Denied(403, "Forbidden", "no way"), Invalid(422, "Invalid", "no way")]
)
async def test_a_target_that_lets_nobody_label_has_the_pod_all_the_same(env, error):
    await ensure(env)
    env.family.body = labelled(app="x")
    env.fail("update", error)
    assert await ensure(env) == ""
    assert env.messages == ["labels of ConfigMap m cannot follow to target n1: no way"]


async def test_a_copy_stays_when_the_target_does_not_take_what_it_should_be(env):
    await ensure(env)
    env.family.body = content("later", uid="original", resourceVersion="6")
    env.fail("update", refused(immutable=False))
    with pytest.raises(ConfigError, match="ConfigMap m cannot follow to target n1: no way"):
        await ensure(env)

    assert env.holds == ["now"]
    assert env.messages == ["ConfigMap m cannot follow to target n1: no way"]
    await asyncio.sleep(RECHECK + 0.1)
    assert env.holds == ["later"]


async def test_nothing_is_done_before_the_list_of_copies_is_complete(env):
    env.server.fail(None, verb="list", delay=math.inf, times=None)
    with pytest.raises(Unreachable, match=f"{TIMEOUT:g} s"):
        await ensure(env)

    assert env.calls == []


async def test_a_target_that_does_not_serve_the_kind_is_named_as_the_reason(env):
    env.server.fail(NotFound(404, "", "404 page not found"), verb="list", times=None)
    with pytest.raises(NotGranted, match="does not serve configmaps of version v1: its version"):
        await ensure(env)

    assert env.calls == []


@pytest.mark.parametrize(
    "theirs", [{}, {keys.PARENT_CLUSTER_NAME: "c9"}, {"labelled": "otherwise"}]
)
async def test_what_is_not_ours_is_left_alone_and_said(env, theirs):
    env.put(content("theirs", uid="foreign", labels=theirs))
    assert "not from this cluster" in await ensure(env)
    assert "not from this cluster" in await ensure(env)
    assert env.calls == ["create", "get"]
    assert env.holds == ["theirs"]
    assert len(env.messages) == 1


async def test_a_copy_of_an_earlier_original_that_holds_data_is_left_alone_and_said(env):
    await ensure(env)
    env.family.body = content("later", uid="again", resourceVersion="6")
    env.family.replaces = lambda _copy, _original: False
    assert "is that of an earlier one of this name" in await ensure(env)
    assert "parent-uid=original" in await ensure(env)
    assert env.calls == ["create"]
    assert env.holds == ["now"]
    assert len(env.messages) == 1
    env.family.replaces = lambda _copy, _original: True  # somebody has given it the label
    await ensure(env)
    assert env.holds == ["later"]


async def test_what_is_not_ours_but_the_same_is_not_worth_a_word(env):
    env.put(content("now", uid="foreign"))
    assert await ensure(env) == ""
    assert env.messages == []


async def test_what_was_in_the_way_in_a_cluster_is_made_in_the_one_that_replaces_it(env):
    env.put(content("now", uid="foreign"))
    await ensure(env)
    replacing = APIServer("c3", env.clock)
    replacing.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
    env.links.remove(env.links.get(N1))
    env.connect("n1", server=replacing)
    await ensure(env)
    assert replacing.find(kinds.CONFIG_MAPS, "m", "ns")


async def test_a_copy_of_another_cluster_of_our_name_is_not_ours(env):
    labels = {keys.PARENT_CLUSTER_NAME: "c1"}
    annotations = {keys.PARENT_CLUSTER_UID: "another"}
    env.put(content("theirs", labels=labels, annotations=annotations))
    assert "not from this cluster" in await ensure(env)
    assert env.holds == ["theirs"]


async def test_a_token_of_a_pod_is_not_overwritten_by_a_namesake(env):
    labels = {keys.PARENT_CLUSTER_NAME: "c1", keys.TOKEN: ""}
    env.put(content("token", labels=labels, annotations={keys.PARENT_CLUSTER_UID: "uid-1"}))
    assert "not from this cluster" in await ensure(env)
    assert env.holds == ["token"]


async def test_a_target_that_is_the_source_needs_nothing(env):
    env.put(content("now", uid="original"))
    assert await ensure(env) == ""
    assert env.calls == ["create", "get"]


@pytest.mark.parametrize("verb", ["create", "list"])
async def test_missing_rights_are_explained(env, verb):
    env.server.fail(Denied(403, "Forbidden", "no way"), verb=verb, times=None)
    link = env.connect("n3")
    await asyncio.sleep(1)
    with pytest.raises(ConfigError, match=r"may not follow to target n3: no way; .*configMapsAnd"):
        await ensure(env, link.node_name)


async def test_a_conflict_is_tried_again_for_whoever_waits(env):
    env.fail("create", Conflict(409, "Conflict", "changed"))
    assert await ensure(env) == ""
    assert env.holds == ["now"]


async def test_a_target_that_does_not_answer_is_said_at_once(env):
    env.fail("create", Unreachable("away"))
    with pytest.raises(Unreachable, match="away"):
        await ensure(env)

    link = env.links.get(N1)
    link.set_health(LinkHealth(False, "Unreachable", "for long", env.clock.now()))
    with pytest.raises(Unreachable, match="for long"):
        await ensure(env)


async def test_one_without_a_connection_is_said_too(env):
    with pytest.raises(Unreachable, match="not connected"):
        await env.follower.ensure([Key("n9", MAP)])
