"""All parts of following at work: what a proxy pod needs comes to its target, and goes with it."""

from __future__ import annotations

import asyncio
from functools import partial
from operator import attrgetter

import pytest

from tests.unit.following.fleet import COPIED, CPU, SOON, UNUSED, US, FollowingFleet
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import config
from vnode.following.follower import GRACE
from vnode.runtime.write_limits import COPIES

pytestmark = pytest.mark.looptime


@pytest.fixture
async def fleet(clock):
    fleet = FollowingFleet(clock)
    fleet.add_originals()
    return fleet


async def test_what_a_bound_pod_needs_comes_to_its_target_alone(fleet):
    async with fleet.running():
        assert fleet.copied() == set()
        fleet.add_pod()
        await asyncio.sleep(SOON)
        assert fleet.copied() == set(COPIED)
        assert fleet.copied(fleet.cpu) == set()
        for kind in COPIED:
            found, original = fleet.copy(kind), fleet.source.find(kind, "web", "ns") or {}
            assert objects.labels(found)[keys.PARENT_UID] == objects.uid(original)
            assert objects.labels(found)["team"] == "blue"


async def test_a_copy_holds_what_the_original_does_in_words_of_the_target(fleet):
    fleet.add_pod()
    async with fleet.running():
        assert fleet.copy(kinds.CONFIG_MAPS)["data"] == {"a": "1"}
        assert fleet.copy(kinds.SECRETS)["data"] == {"a": "MQ=="}
        assert objects.spec(fleet.copy(kinds.CLAIMS))["storageClassName"] == "ssd"
        wanted = {keys.PREFIX + "app": "web", **US.labels}
        assert objects.spec(fleet.copy(kinds.SERVICES))["selector"] == wanted


@pytest.mark.parametrize("kind", UNUSED, ids=attrgetter("plural"))
async def test_a_changed_original_changes_the_copy(fleet, kind):
    changes: dict[Kind, Object] = {
        kinds.CONFIG_MAPS: {"data": {"b": "2"}},
        kinds.SECRETS: {"data": {"b": "Mg=="}},
        kinds.SERVICES: {"spec": {"selector": {"app": "web"}, "ports": [{"port": 81}]}},
    }
    changed = changes[kind]
    fleet.add_pod()
    async with fleet.running():
        before = fleet.copy(kind)
        fleet.source.change(kind, "web", "ns", lambda original: original.update(changed))
        await asyncio.sleep(SOON)
        after = fleet.copy(kind)
        assert objects.uid(after) == objects.uid(before)
        if kind is kinds.SERVICES:
            assert objects.spec(after)["ports"] == [{"port": 81}]
        else:
            assert after["data"] == changed["data"]


@pytest.mark.parametrize("kind", UNUSED, ids=attrgetter("plural"))
async def test_an_original_that_changes_all_the_time_is_neither_read_nor_written_as_often(
    fleet, kind
):
    def asked(server):
        return sum(
            request.kind is kind and request.verb in ("get", "update")
            for request in server.requests
        )

    fleet.add_pod()
    async with fleet.running():
        before = [asked(server) for server in (fleet.source, fleet.gpu)]
        for number in range(40):
            labels = {"team": str(number)}
            change = partial(dict.update, labels=labels)
            fleet.source.change(kind, "web", "ns", lambda obj, do=change: do(obj["metadata"]))
            await asyncio.sleep(0.1)

        await asyncio.sleep(1 / COPIES.rate)
        assert objects.labels(fleet.copy(kind))["team"] == "39"
        for server, count in zip((fleet.source, fleet.gpu), before, strict=True):
            assert asked(server) - count <= COPIES.burst + 6 * COPIES.rate


@pytest.mark.parametrize("kind", COPIED, ids=attrgetter("plural"))
async def test_a_changed_label_changes_the_copy(fleet, kind):
    fleet.add_pod()
    async with fleet.running():
        labels = {"team": "red"}
        fleet.source.change(kind, "web", "ns", lambda obj: obj["metadata"].update(labels=labels))
        await asyncio.sleep(SOON)
        assert objects.labels(fleet.copy(kind))["team"] == "red"


@pytest.mark.parametrize("kind", UNUSED, ids=attrgetter("plural"))
async def test_a_deleted_original_takes_its_copy_along(fleet, kind):
    fleet.add_pod()
    async with fleet.running():
        fleet.source.remove(kind, "web", "ns")
        await asyncio.sleep(GRACE + SOON)
        assert fleet.copied() == set(COPIED) - {kind}


async def test_a_deleted_claim_takes_its_copy_along_once_no_pod_uses_it(fleet):
    fleet.add_pod()
    async with fleet.running():
        fleet.source.remove(kinds.CLAIMS, "web", "ns")
        await asyncio.sleep(GRACE + SOON)
        assert kinds.CLAIMS in fleet.copied()
        fleet.remove_pod()
        await asyncio.sleep(GRACE + SOON)
        assert fleet.copied() == set()


@pytest.mark.parametrize("kind", COPIED, ids=attrgetter("plural"))
async def test_an_original_that_comes_after_the_pod_follows_it(fleet, kind):
    fleet.source.remove(kind, "web", "ns")
    fleet.add_pod()
    async with fleet.running():
        assert kind not in fleet.copied()
        fleet.add_original(kind)
        await asyncio.sleep(SOON)
        assert kind in fleet.copied()


async def test_the_last_user_takes_the_copies_away_but_for_data(fleet):
    fleet.add_pod("web-0")
    fleet.add_pod("web-1")
    async with fleet.running():
        fleet.remove_pod("web-0")
        await asyncio.sleep(GRACE + SOON)
        assert fleet.copied() == set(COPIED)
        fleet.remove_pod("web-1")
        await asyncio.sleep(GRACE - SOON)
        assert fleet.copied() == set(COPIED)
        await asyncio.sleep(2 * SOON)
        assert fleet.copied() == {kinds.CLAIMS}


async def test_a_pod_that_has_finished_uses_nothing(fleet):
    fleet.add_pod()
    async with fleet.running():
        fleet.add_pod(phase="Succeeded")
        await asyncio.sleep(GRACE + SOON)
        assert fleet.copied() == {kinds.CLAIMS}


async def test_copies_whose_users_went_while_nobody_looked_go_at_the_start(clock, fleet):
    fleet.add_pod()
    async with fleet.running():
        pass

    fleet.remove_pod()
    async with fleet.successor(clock).running():
        await asyncio.sleep(GRACE + SOON)
        assert fleet.copied() == {kinds.CLAIMS}


async def test_a_leader_that_finds_all_in_order_writes_nothing(clock, fleet):
    fleet.add_pod()
    async with fleet.running():
        before = {kind: fleet.copy(kind) for kind in COPIED}

    async with fleet.successor(clock).running():
        await asyncio.sleep(60)
        assert {kind: fleet.copy(kind) for kind in COPIED} == before
        assert fleet.events_about == []


@pytest.mark.parametrize(
    ("follows", "copied"),
    [
        (config.FollowingConfig(config_maps_and_secrets=False), {kinds.SERVICES}),
        (config.FollowingConfig(services=False), set(COPIED) - {kinds.SERVICES}),
    ],
    ids=["services", "config"],
)
async def test_what_is_turned_off_does_not_follow(clock, follows, copied):
    fleet = FollowingFleet(clock, follows=follows)
    fleet.add_originals()
    pod = fleet.add_pod()
    async with fleet.running():
        assert await fleet.following.ensure(pod, fleet.link) == ("", ())
        assert fleet.copied() == copied


@pytest.mark.parametrize(
    ("follows", "stays"),
    [
        (config.FollowingConfig(config_maps_and_secrets=False), set(COPIED) - {kinds.SERVICES}),
        (config.FollowingConfig(services=False), {kinds.SERVICES, kinds.CLAIMS}),
    ],
    ids=["services", "config"],
)
async def test_what_has_been_turned_off_stays_where_it_is(clock, fleet, follows, stays):
    fleet.add_pod()
    async with fleet.running():
        pass

    fleet.remove_pod()
    async with fleet.successor(clock, follows=follows).running():
        await asyncio.sleep(GRACE + SOON)
        assert fleet.copied() == stays


async def test_nothing_goes_where_pods_of_the_namespace_may_not(fleet):
    """Anybody may name a virtual node in a pod."""
    fleet.source.add(
        kinds.CONFIG_MAPS, {"metadata": {"name": "web", "namespace": "theirs"}, "data": {}}
    )
    fleet.cpu.add(kinds.NAMESPACES, {"metadata": {"name": "theirs"}})
    fleet.add_pod(node=CPU.node_name, namespace="theirs")
    fleet.add_pod(node=CPU.node_name)
    async with fleet.running():
        await asyncio.sleep(60)
        assert kinds.CONFIG_MAPS in fleet.copied(fleet.cpu)
        assert fleet.cpu.find(kinds.CONFIG_MAPS, "web", "theirs") is None


async def test_claims_go_only_where_a_target_asks_for_them(fleet):
    fleet.add_pod(node=CPU.node_name)
    async with fleet.running():
        assert fleet.copied(fleet.cpu) == set(COPIED) - {kinds.CLAIMS}
        assert fleet.cpu.count(kind=kinds.CLAIMS) == 0
