"""When a copy comes, changes and goes, with what it is a copy of and who needs it."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.follower_environment import (
    MAP,
    N1,
    N2,
    US,
    content,
    ensure,
    env,
    labelled,
    refused,
)
from vnode.following.follower import GRACE
from vnode.following.reference_index import Key, Need
from vnode.following.writing import RECHECK
from vnode.runtime.write_limits import COPIES

__all__ = ["env"]

pytestmark = pytest.mark.looptime


async def test_what_is_wanted_is_brought_once(env):
    assert await ensure(env) == ""
    assert await ensure(env) == ""
    assert env.calls == ["create"]
    assert US.made(env.copy)


async def test_a_pod_on_the_node_of_a_target_for_other_namespaces_copies_nothing(env):
    """Whoever makes pods may name any node in them."""
    link = env.connect("n3", namespace="other")
    await ensure(env, link.node_name)
    assert env.calls == []


async def test_nothing_new_is_copied_out_of_a_namespace_without_the_label(env):
    env.namespaces.add("ns")
    await ensure(env)
    assert env.calls == []
    env.namespaces.clear()
    await ensure(env)
    env.namespaces.add("ns")
    await ensure(env)
    assert env.calls == ["create"]  # what is there stays for the pods that run


async def test_a_copy_that_differs_is_updated(env):
    await ensure(env)
    env.family.body = content("later", uid="original", resourceVersion="6")
    await ensure(env)
    assert env.holds == ["later"]
    assert env.calls == ["create", "update"]


async def change_all_the_time(env):
    """Change the original each tenth of a second, twenty times; return its last content."""
    await ensure(env)
    for number in range(20):
        env.family.body = content(str(number), uid="original", resourceVersion=str(number))
        env.follower.wake(Key(N1, MAP))
        await asyncio.sleep(0.1)

    return "19"


async def test_what_changes_all_the_time_is_written_in_intervals_and_its_last_state_is(env):
    last = await change_all_the_time(env)
    assert env.calls == ["create", *["update"] * (COPIES.burst - 1)]
    await asyncio.sleep(1 / COPIES.rate)
    assert env.holds == [last]
    assert env.calls.count("update") == COPIES.burst


async def test_a_pod_gets_what_changes_all_the_time_as_it_is(env):
    last = await change_all_the_time(env)
    assert env.holds != [last]
    await ensure(env)
    assert env.holds == [last]


def with_labels(obj, **labels):
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


async def test_labels_alone_are_brought_up_to_date_once(env):
    await ensure(env)
    env.family.body = labelled(app="x")
    await ensure(env)
    await ensure(env)
    assert env.copy["metadata"]["labels"]["app"] == "x"
    env.family.body = labelled()
    await ensure(env)
    assert "app" not in env.copy["metadata"]["labels"]
    assert env.calls == ["create", "update", "update"]


async def test_what_a_target_makes_of_labels_is_not_fought(env):
    def admit(body):
        return with_labels(body, **body["metadata"]["labels"] | {"app": "theirs"})

    env.admit = admit
    env.family.body = labelled(app="ours")
    await ensure(env)
    env.follower.wake(Key(N1, MAP))
    await asyncio.sleep(5 * RECHECK)
    await ensure(env)
    assert env.calls == ["create"]
    env.family.body = labelled(app="ours", more="1")
    await ensure(env)
    await ensure(env)
    assert env.calls == ["create", "update"]


async def test_a_label_that_somebody_changed_is_put_right_but_not_as_often_as_they_like(env):
    env.family.body = labelled(app="ours")
    await ensure(env)
    for _ in range(5):
        copy = env.copy
        env.put(with_labels(copy, **copy["metadata"]["labels"] | {"app": "theirs"}))
        await ensure(env)

    assert env.calls == ["create"]
    await asyncio.sleep(RECHECK + 0.1)
    assert env.copy["metadata"]["labels"]["app"] == "ours"
    assert env.calls == ["create", "update"]


async def test_a_copy_that_cannot_change_is_recreated_and_that_is_said(env):
    await ensure(env)
    env.family.body = content("later", uid="original", resourceVersion="6")
    env.fail("update", refused(immutable=True))
    assert await ensure(env) == ""
    assert env.holds == ["later"]
    assert env.calls == ["create", "update", "delete", "create"]
    assert env.messages == ["ConfigMap m of target n1 was deleted and recreated: no way"]


async def test_a_copy_that_can_never_be_what_it_should_is_recreated(env):
    await ensure(env)
    env.family.body = content("later", uid="original", resourceVersion="6")
    env.family.update = lambda _body, _copy: None
    await ensure(env)
    assert env.holds == ["later"]
    assert env.calls == ["create", "delete", "create"]


async def test_an_unused_copy_goes_after_a_while(env):
    await ensure(env)
    env.family.needs.clear()
    env.follower.wake(Key(N1, MAP))
    await asyncio.sleep(GRACE - 0.1)
    assert env.holds == ["now"]
    await asyncio.sleep(0.2)
    assert env.holds == []


async def test_a_next_user_in_time_keeps_a_copy(env):
    await ensure(env)
    env.family.needs.clear()
    env.follower.wake(Key(N1, MAP))
    await asyncio.sleep(GRACE - 0.1)
    await ensure(env)
    await asyncio.sleep(GRACE)
    assert env.calls == ["create"]


async def test_nothing_is_removed_while_pods_are_not_all_known(env):
    await ensure(env)
    env.family.needs.clear()
    env.complete[N1] = False
    env.follower.wake(Key(N1, MAP))
    await asyncio.sleep(10 * GRACE)
    assert env.holds == ["now"]
    env.complete[N1] = True
    await asyncio.sleep(GRACE)
    assert env.holds == []


async def test_a_copy_that_another_target_needs_in_the_same_cluster_stays(env):
    await ensure(env, N1)
    await ensure(env, N2)
    env.family.needs = {N2: Need.WANTED}
    env.follower.wake(Key(N1, MAP))
    await asyncio.sleep(2 * GRACE)
    assert env.holds == ["now"]
    env.family.needs = {}
    env.follower.wake(Key(N1, MAP))
    await asyncio.sleep(2 * GRACE)
    assert env.holds == []


async def test_a_copy_whose_original_is_gone_goes(env):
    await ensure(env)
    env.family.body = None
    await ensure(env)
    assert env.calls == ["create", "delete"]
