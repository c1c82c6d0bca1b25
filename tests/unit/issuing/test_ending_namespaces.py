"""What was issued is revoked in whichever order a request, its Target and its namespace go."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.issuing.issuing_environment import IssuingEnvironment
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.runtime.link_health import LEAVING, LinkHealth

pytestmark = pytest.mark.looptime


def end_namespace(env: IssuingEnvironment) -> None:
    """Have the namespace be Terminating, as its controller has it before it deletes anything."""
    now = objects.timestamp(env.clock.now())
    env.source.change(
        *(kinds.NAMESPACES, "team", ""), lambda obj: obj["metadata"].update(deletionTimestamp=now)
    )


def delete_target(env: IssuingEnvironment) -> None:
    """Have the Target deleted, and its link begin to leave."""
    env.source.remove(kinds.CLUSTER_TARGETS, "east")
    env.link.set_health(LinkHealth(False, LEAVING, "the Target was deleted", env.clock.now()))


async def end_link(env: IssuingEnvironment) -> None:
    """Have the link go, as a connection does once it has cleaned up."""
    env.links.remove(env.link)
    await env.link.free.wait()
    env.target.stop()


def events(env: IssuingEnvironment) -> list[str]:
    return [str(each.get("reason")) for each in env.source.all(kinds.EVENTS)]


@pytest.mark.parametrize("seconds", [0, 0.5, 2, 8])
async def test_a_request_that_goes_soon_after_its_target_is_revoked(
    seconds: float, clock: Clock
) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        assert len(env.made()) == 5
        delete_target(env)
        going = asyncio.create_task(end_link(env))
        await asyncio.sleep(seconds)
        await env.delete()
        await asyncio.sleep(1)
        assert (env.made(), env.find()) == (set(), {})
        await going


@pytest.mark.parametrize("seconds", [0.5, 30, 300])
async def test_a_namespace_that_ends_has_all_revoked_while_there_is_a_link(
    seconds: float, clock: Clock
) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        end_namespace(env)
        delete_target(env)
        going = asyncio.create_task(end_link(env))
        await asyncio.sleep(seconds)
        assert env.made() == set()
        await env.delete()
        await asyncio.sleep(1)
        assert (env.find(), env.secret()) == ({}, None)
        assert "TokenNotRevoked" not in events(env)
        await going


async def test_a_namespace_ends_though_what_was_issued_cannot_be_revoked_any_more(
    clock: Clock,
) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        env.source.remove(kinds.CLUSTER_TARGETS, "east")
        env.links.remove(env.link)
        await asyncio.sleep(60)
        await env.delete()
        await asyncio.sleep(60)
        assert env.conditions()["Revoked"] == ("False", "TargetNotFound")
        end_namespace(env)
        await asyncio.sleep(1)
        assert env.find() == {}
        assert len(env.made()) == 5
        await asyncio.sleep(5)
        assert "TokenNotRevoked" in events(env)


async def test_a_leader_that_has_just_begun_revokes_by_a_link_that_leaves(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        assert len(env.made()) == 5

    env.begin_term()
    delete_target(env)
    await env.delete()
    async with env.running():
        await asyncio.sleep(5)
        assert (env.made(), env.find()) == (set(), {})


async def test_nothing_is_revoked_of_a_target_that_goes_alone(clock: Clock) -> None:
    env = IssuingEnvironment(clock)
    env.request()
    async with env.running():
        delete_target(env)
        going = asyncio.create_task(end_link(env))
        await asyncio.sleep(60)
        await going
        assert len(env.made()) == 5
        assert env.find() != {}
