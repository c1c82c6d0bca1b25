"""What was made for an AuthTokenRequest goes with it, and nothing else does."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver import links as test_links
from tests.apiserver.server import APIServer
from tests.unit.issuing.issuing_environment import RULES, IssuingEnvironment
from vnode.api import keys, kinds
from vnode.api.clock import Clock
from vnode.api.errors import Conflict
from vnode.runtime.link_health import UNREACHABLE, LinkHealth

pytestmark = pytest.mark.looptime


async def test_deletion_takes_away_what_was_made_and_nothing_else(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    foreign = {"metadata": {"name": "view"}, "rules": RULES}
    env.target.add(kinds.CLUSTER_ROLES, foreign)
    env.request(clusterRoles=[{"name": "view"}, {"name": "all-jobs", "rules": RULES}])
    async with env.running():
        assert len(env.made()) == 6
        await env.delete()
        await asyncio.sleep(1)

    assert env.made() == set()
    assert (env.secret(), env.find()) == (None, {})
    assert env.target.find(kinds.CLUSTER_ROLES, "view") is not None
    assert env.target.find(kinds.NAMESPACES, "queues") is not None
    assert not env.target.count("delete", kinds.NAMESPACES)


async def test_what_another_request_uses_stays_until_that_one_goes(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        env.request("other")
        await asyncio.sleep(1)
        assert all(status == "True" for status, _ in list(env.conditions("other").values())[:7])
        await env.delete()
        await asyncio.sleep(1)
        assert env.made() >= {
            "ServiceAccount queues/queue",
            "Role work/jobs",
            "ClusterRole all-jobs",
        }
        assert len(env.made()) == 5
        await env.delete("other")
        await asyncio.sleep(1)
        assert env.made() == set()


async def test_a_request_that_is_deleted_waits_for_its_target(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        away = LinkHealth(False, UNREACHABLE, "it does not answer", clock.now())
        env.link.set_health(away)
        await env.delete()
        await asyncio.sleep(400)
        assert env.secret() is None
        assert env.conditions()["Revoked"] == ("False", "TargetUnreachable")
        assert keys.ISSUED_TOKEN in env.message("Revoked")
        assert len(env.made()) == 5
        test_links.set_healthy(env.link, True, clock)
        await asyncio.sleep(1)
        assert (env.made(), env.find()) == (set(), {})


async def test_nothing_is_taken_from_another_cluster_of_the_same_name(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        env.links.remove(env.link)
        await env.delete()
        await asyncio.sleep(1)
        assert env.conditions()["Revoked"] == ("False", "TargetNotFound")
        env.links.add(env.make_link("cluster-3", APIServer("c3", clock)))
        await asyncio.sleep(1)
        assert env.conditions()["Revoked"] == ("False", "OtherCluster")


async def test_requests_that_share_an_account_may_end_at_the_same_time(clock: Clock) -> None:
    """Each finds that the other has changed what both use, and looks again at once."""
    env, both = IssuingEnvironment(clock), ("queue", "other")
    async with env.running():
        for name in both:
            env.request(name)

        await asyncio.sleep(20)
        assert len(env.made()) == 7
        # Both have read the account before either lets go of it.
        env.target.fail(None, verb="patch", kind=kinds.SERVICE_ACCOUNTS, times=None, delay=0.1)
        for name in both:
            await env.delete(name)

        await asyncio.sleep(1)
        assert [env.find(name) for name in both] == [{}, {}]
        assert env.made() == set()


async def test_what_others_change_without_end_is_told_and_tried_again_later(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        changed = Conflict(409, "Conflict", "the object has been modified")
        fault = env.target.fail(changed, verb="delete", kind=kinds.ROLES, times=None)
        await env.delete()
        await asyncio.sleep(9)
        assert env.conditions()["Revoked"] == ("False", "TargetFailed")
        assert "the object has been modified" in env.message("Revoked")
        assert env.target.count("delete", kinds.ROLES) == 5
        fault.clear()
        await asyncio.sleep(2)
        assert (env.made(), env.find()) == (set(), {})
