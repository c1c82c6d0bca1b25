"""What was made for an AuthTokenRequest goes with it, and nothing else does."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver import links as test_links
from tests.apiserver.server import APIServer
from tests.unit.issuing.issuing_world import RULES, IssuingWorld
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.errors import Conflict
from vnode.runtime.links import UNREACHABLE, LinkHealth

pytestmark = pytest.mark.looptime


async def test_deletion_takes_away_what_was_made_and_nothing_else(clock: Clock) -> None:
    world = IssuingWorld(clock)
    foreign = {"metadata": {"name": "view"}, "rules": RULES}
    world.target.add(kinds.CLUSTER_ROLES, foreign)
    world.request(clusterRoles=[{"name": "view"}, {"name": "all-jobs", "rules": RULES}])
    async with world.running():
        assert len(world.made()) == 6
        await world.delete()
        await asyncio.sleep(1)

    assert world.made() == set()
    assert (world.secret(), world.find()) == (None, {})
    assert world.target.find(kinds.CLUSTER_ROLES, "view") is not None
    assert world.target.find(kinds.NAMESPACES, "queues") is not None
    assert not world.target.count("delete", kinds.NAMESPACES)


async def test_what_another_request_uses_stays_until_that_one_goes(clock: Clock) -> None:
    world = IssuingWorld(clock)
    world.request()
    async with world.running():
        world.request("other")
        await asyncio.sleep(1)
        assert all(status == "True" for status, _ in list(world.conditions("other").values())[:7])
        await world.delete()
        await asyncio.sleep(1)
        assert world.made() >= {
            "ServiceAccount queues/queue",
            "Role work/jobs",
            "ClusterRole all-jobs",
        }
        assert len(world.made()) == 5
        await world.delete("other")
        await asyncio.sleep(1)
        assert world.made() == set()


async def test_a_request_that_is_deleted_waits_for_its_target(clock: Clock) -> None:
    world = IssuingWorld(clock)
    world.request()
    async with world.running():
        away = LinkHealth(False, UNREACHABLE, "it does not answer", clock.now())
        world.link.set_health(away)
        await world.delete()
        await asyncio.sleep(400)
        assert world.secret() is None
        assert world.conditions()["Revoked"] == ("False", "TargetUnreachable")
        assert keys.ISSUED_TOKEN in world.message("Revoked")
        assert len(world.made()) == 5
        test_links.set_healthy(world.link, True, clock)
        await asyncio.sleep(1)
        assert (world.made(), world.find()) == (set(), {})


async def test_nothing_is_taken_from_another_cluster_of_the_same_name(clock: Clock) -> None:
    world = IssuingWorld(clock)
    world.request()
    async with world.running():
        world.links.remove(world.link)
        await world.delete()
        await asyncio.sleep(1)
        assert world.conditions()["Revoked"] == ("False", "TargetNotFound")
        world.links.add(world.make_link("cluster-3", APIServer("c3", clock)))
        await asyncio.sleep(1)
        assert world.conditions()["Revoked"] == ("False", "OtherCluster")


async def test_requests_that_share_an_account_may_end_at_the_same_time(clock: Clock) -> None:
    """Each finds that the other has changed what both use, and looks again at once."""
    world, both = IssuingWorld(clock), ("queue", "other")
    async with world.running():
        for name in both:
            world.request(name)

        await asyncio.sleep(20)
        assert len(world.made()) == 7
        # Both have read the account before either lets go of it.
        world.target.fail(None, verb="patch", kind=kinds.SERVICE_ACCOUNTS, times=None, delay=0.1)
        for name in both:
            await world.delete(name)

        await asyncio.sleep(1)
        assert [world.find(name) for name in both] == [{}, {}]
        assert world.made() == set()


async def test_what_others_change_without_end_is_told_and_tried_again_later(clock: Clock) -> None:
    world = IssuingWorld(clock)
    world.request()
    async with world.running():
        changed = Conflict(409, "Conflict", "the object has been modified")
        fault = world.target.fail(changed, verb="delete", kind=kinds.ROLES, times=None)
        await world.delete()
        await asyncio.sleep(9)
        assert world.conditions()["Revoked"] == ("False", "TargetFailed")
        assert "the object has been modified" in world.message("Revoked")
        assert world.target.count("delete", kinds.ROLES) == 5
        fault.clear()
        await asyncio.sleep(2)
        assert (world.made(), world.find()) == (set(), {})
