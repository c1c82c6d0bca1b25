"""When a copy comes, changes and goes, with what it is a copy of and who needs it."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.follower_world import (
    MAP,
    N1,
    N2,
    US,
    content,
    ensure,
    labelled,
    refused,
    world,
)
from vnode.following.follower import GRACE
from vnode.following.reference_index import Key, Need
from vnode.following.writing import RECHECK

__all__ = ["world"]

pytestmark = pytest.mark.looptime


async def test_what_is_wanted_is_brought_once(world):
    assert await ensure(world) == ""
    assert await ensure(world) == ""
    assert world.calls == ["create"]
    assert US.made(world.copy)


async def test_a_pod_on_the_node_of_a_target_for_other_namespaces_copies_nothing(world):
    """Whoever makes pods may name any node in them."""
    link = world.connect("n3", namespace="other")
    await ensure(world, link.node_name)
    assert world.calls == []


async def test_nothing_new_is_copied_out_of_a_namespace_without_the_label(world):
    world.namespaces.add("ns")
    await ensure(world)
    assert world.calls == []
    world.namespaces.clear()
    await ensure(world)
    world.namespaces.add("ns")
    await ensure(world)
    assert world.calls == ["create"]  # what is there stays for the pods that run


async def test_a_copy_that_differs_is_updated(world):
    await ensure(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    await ensure(world)
    assert world.holds == ["later"]
    assert world.calls == ["create", "update"]


def with_labels(obj, **labels):
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


async def test_labels_alone_are_brought_up_to_date_once(world):
    await ensure(world)
    world.family.body = labelled(app="x")
    await ensure(world)
    await ensure(world)
    assert world.copy["metadata"]["labels"]["app"] == "x"
    world.family.body = labelled()
    await ensure(world)
    assert "app" not in world.copy["metadata"]["labels"]
    assert world.calls == ["create", "update", "update"]


async def test_what_a_target_makes_of_labels_is_not_fought(world):
    def admit(body):
        return with_labels(body, **body["metadata"]["labels"] | {"app": "theirs"})

    world.admit = admit
    world.family.body = labelled(app="ours")
    await ensure(world)
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(5 * RECHECK)
    await ensure(world)
    assert world.calls == ["create"]
    world.family.body = labelled(app="ours", more="1")
    await ensure(world)
    await ensure(world)
    assert world.calls == ["create", "update"]


async def test_a_label_that_somebody_changed_is_put_right_but_not_as_often_as_they_like(world):
    world.family.body = labelled(app="ours")
    await ensure(world)
    for _ in range(5):
        copy = world.copy
        world.put(with_labels(copy, **copy["metadata"]["labels"] | {"app": "theirs"}))
        await ensure(world)

    assert world.calls == ["create"]
    await asyncio.sleep(RECHECK + 0.1)
    assert world.copy["metadata"]["labels"]["app"] == "ours"
    assert world.calls == ["create", "update"]


async def test_a_copy_that_cannot_change_is_recreated_and_that_is_said(world):
    await ensure(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.fail("update", refused(immutable=True))
    assert await ensure(world) == ""
    assert world.holds == ["later"]
    assert world.calls == ["create", "update", "delete", "create"]
    assert world.messages == ["ConfigMap m of target n1 was deleted and recreated: no way"]


async def test_a_copy_that_can_never_be_what_it_should_is_recreated(world):
    await ensure(world)
    world.family.body = content("later", uid="original", resourceVersion="6")
    world.family.update = lambda _body, _copy: None
    await ensure(world)
    assert world.holds == ["later"]
    assert world.calls == ["create", "delete", "create"]


async def test_an_unused_copy_goes_after_a_while(world):
    await ensure(world)
    world.family.needs.clear()
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(GRACE - 0.1)
    assert world.holds == ["now"]
    await asyncio.sleep(0.2)
    assert world.holds == []


async def test_a_next_user_in_time_keeps_a_copy(world):
    await ensure(world)
    world.family.needs.clear()
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(GRACE - 0.1)
    await ensure(world)
    await asyncio.sleep(GRACE)
    assert world.calls == ["create"]


async def test_nothing_is_removed_while_pods_are_not_all_known(world):
    await ensure(world)
    world.family.needs.clear()
    world.complete[N1] = False
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(10 * GRACE)
    assert world.holds == ["now"]
    world.complete[N1] = True
    await asyncio.sleep(GRACE)
    assert world.holds == []


async def test_a_copy_that_another_target_needs_in_the_same_cluster_stays(world):
    await ensure(world, N1)
    await ensure(world, N2)
    world.family.needs = {N2: Need.WANTED}
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(2 * GRACE)
    assert world.holds == ["now"]
    world.family.needs = {}
    world.follower.wake(Key(N1, MAP))
    await asyncio.sleep(2 * GRACE)
    assert world.holds == []


async def test_a_copy_whose_original_is_gone_goes(world):
    await ensure(world)
    world.family.body = None
    await ensure(world)
    assert world.calls == ["create", "delete"]
