"""What follows pods of named namespaces, of which one may let the agent in no more."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.following.fleet import FollowingFleet
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import Denied, Unreachable

pytestmark = pytest.mark.looptime

NAMED = ("ns", "more")
DENIED = Denied(403, "Forbidden", "may not list")


def held_fleet(clock: Clock) -> FollowingFleet:
    """Return a fleet whose agent is held to NAMED, which are there."""
    fleet = FollowingFleet(clock, named=NAMED)
    fleet.source.add(kinds.NAMESPACES, {"metadata": {"name": "more"}})
    return fleet


async def test_copies_follow_pods_of_the_named_namespaces(clock: Clock) -> None:
    fleet = held_fleet(clock)
    fleet.add_originals()
    fleet.add_pod()
    async with fleet.running():
        assert fleet.copy(kinds.SECRETS) is not None
        assert fleet.copy(kinds.SERVICES) is not None
        fleet.remove_pod()
        await asyncio.sleep(120)
        assert fleet.copy(kinds.SECRETS) is None
        assert fleet.copy(kinds.SERVICES) is None


async def test_copies_stay_while_nobody_may_say_which_pods_there_are(clock: Clock) -> None:
    fleet = held_fleet(clock)
    fleet.add_originals()
    fleet.add_pod()
    async with fleet.running():
        assert fleet.copy(kinds.SECRETS) is not None

    successor = fleet.successor(clock, named=NAMED)
    fault = fleet.source.fail(
        DENIED, verb="list", when=lambda request: request.namespace == "ns", times=None
    )
    async with successor.running():
        assert successor.proxies.lacks("ns")
        await asyncio.sleep(120)
        assert fleet.copy(kinds.SECRETS) is not None
        assert fleet.copy(kinds.SERVICES) is not None
        fleet.remove_pod()
        fault.clear()
        await asyncio.sleep(240)
        assert fleet.copy(kinds.SECRETS) is None


async def test_no_pod_goes_while_nobody_may_say_which_policies_select_it(clock: Clock) -> None:
    fleet = held_fleet(clock)
    fault = fleet.source.fail(
        DENIED,
        verb="list",
        kind=kinds.NETWORK_POLICIES,
        when=lambda request: request.namespace == "ns",
        times=None,
    )
    async with fleet.running():
        pod = fleet.add_pod(node=None)
        with pytest.raises(Unreachable, match="NetworkPolicies of this cluster are not known"):
            await fleet.following.ensure(pod, fleet.link)

        fault.clear()
        await asyncio.sleep(120)
        await fleet.following.ensure(pod, fleet.link)
