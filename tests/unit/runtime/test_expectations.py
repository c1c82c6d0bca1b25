from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.runtime.expectations import LOST_AFTER, Expectations

pytestmark = pytest.mark.looptime


def at(version):
    return {"metadata": {"resourceVersion": version}}


@pytest.mark.parametrize(
    ("shown", "pending"),
    [("7", True), ("8", True), ("9", False), ("10", False), ("6", True)],
)
async def test_a_write_is_under_way_until_its_version_or_a_newer_one_is_shown(shown, pending):
    expectations = Expectations()
    expectations.expect("a", at("7"), at("9"))
    assert expectations.pending("a", at(shown)) is pending
    assert not expectations.pending("b", at(shown))


async def test_versions_that_are_no_numbers_are_the_same_or_not():
    expectations = Expectations()
    expectations.expect("a", at("x7"), at("x9"))
    assert expectations.pending("a", at("x7"))
    assert not expectations.pending("a", at("x5"))
    assert not expectations.pending("a", at("9" * 200_000))  # Python refuses to read that


async def test_a_write_that_changed_nothing_has_no_echo():
    expectations = Expectations()
    expectations.expect("a", at("7"), at("7"))
    assert not expectations.pending("a", at("7"))


async def test_an_object_that_ends_with_its_last_finalizer_is_awaited_to_go(clock):
    server = APIServer("c1", clock)
    metadata = {"name": "a", "namespace": "n", "finalizers": ["a.b/c"]}
    server.add(kinds.CONFIG_MAPS, {"metadata": metadata})
    client, expectations = server.client("agent"), Expectations()
    held = await client.delete(kinds.CONFIG_MAPS, "a", "n")
    assert held is not None
    body = {"metadata": {"finalizers": []}}
    await expectations.patch(client, kinds.CONFIG_MAPS, held, body)
    assert expectations.pending("n/a", held)
    made_anew = server.add(kinds.CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "n"}})
    assert not expectations.pending("n/a", made_anew)


async def test_an_echo_that_does_not_come_for_minutes_never_will():
    woken = []
    expectations = Expectations(woken.append)
    expectations.expect("a", at("900"), at("901"))
    await asyncio.sleep(10)
    expectations.expect("b", at("900"), at("902"))
    await asyncio.sleep(LOST_AFTER - 11)
    assert expectations.pending("a", at("5"))
    assert woken == []
    await asyncio.sleep(2)
    assert woken == ["a"]
    assert not expectations.pending("a", at("5"))
    assert expectations.pending("b", at("5"))
    await asyncio.sleep(10)
    assert woken == ["a", "b"]


async def test_a_later_write_has_all_the_time_for_its_own_echo():
    woken = []
    expectations = Expectations(woken.append)
    expectations.expect("a", at("1"), at("2"))
    await asyncio.sleep(LOST_AFTER - 1)
    expectations.expect("a", at("2"), at("3"))
    await asyncio.sleep(LOST_AFTER - 1)
    assert expectations.pending("a", at("1"))
    assert woken == []


async def test_nothing_is_kept_of_writes_that_nobody_asks_about():
    expectations = Expectations()
    for number in range(100):
        expectations.expect(f"pod-{number}", at("1"), at("2"))

    await asyncio.sleep(LOST_AFTER + 1)
    assert not expectations._writes
    assert expectations._timer is None


async def test_a_patch_is_expected_under_its_key_and_one_of_what_is_gone_is_not(clock):
    server, expectations = APIServer("c1", clock), Expectations()
    server.add(kinds.CONFIG_MAPS, {"metadata": {"name": "m", "namespace": "ns"}})
    (before,) = server.all(kinds.CONFIG_MAPS)
    after = await expectations.patch(
        server.client(), kinds.CONFIG_MAPS, before, {"data": {"a": "b"}}
    )
    assert after is not None
    assert after["data"] == {"a": "b"}
    assert expectations.pending("ns/m", before)
    assert not expectations.pending("ns/m", after)
    server.remove(kinds.CONFIG_MAPS, "m", "ns")
    body = {"data": {"a": "c"}}
    patch = expectations.patch(server.client(), kinds.CONFIG_MAPS, after, body, key="other")
    assert await patch is None
    assert not expectations.pending("other", after)
