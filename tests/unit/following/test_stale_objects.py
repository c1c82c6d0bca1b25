"""Services and Ingresses are woken a few at a time, changes together, and namespaces take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests import background
from tests.computing import BusyClock
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.following import services
from vnode.following.reference_index import Key
from vnode.following.references import Ref
from vnode.following.stale_objects import SLICE, StaleObjects, StaleParts

pytestmark = pytest.mark.looptime


class Woken:
    """Ingresses of namespaces, and the keys that were woken."""

    def __init__(self, clock: Clock, **counts: int) -> None:
        self.keys: list[Key] = []
        self._counts = counts
        self.stale = StaleObjects(self._keys_of, self.keys.append, clock)

    def _keys_of(self, namespace: str, parts: StaleParts) -> Iterator[Key | None]:
        for number in range(self._counts[namespace]):
            for node in parts.nodes:
                yield Key(node, Ref(kinds.INGRESSES, namespace, f"i{number}"))

    def count(self, namespace: str) -> int:
        return sum(key.ref.namespace == namespace for key in self.keys)


async def test_each_is_woken_in_each_target(clock: Clock) -> None:
    woken = Woken(clock, team=3)
    async with background.running(woken.stale.run()):
        woken.stale.add("team", ["a"])
        woken.stale.add("team", ["b"])
        woken.stale.add("none", [])
        await asyncio.sleep(1)
        assert len(woken.keys) == len(set(woken.keys)) == 6


async def test_a_namespace_with_many_keeps_no_other_waiting(clock: Clock) -> None:
    woken = Woken(clock, many=10 * SLICE, one=1)
    async with background.running(woken.stale.run()):
        woken.stale.add("many", ["a"])
        await asyncio.sleep(0)
        woken.stale.add("one", ["a"])
        await asyncio.sleep(1)
        (at,) = [n for n, key in enumerate(woken.keys) if key.ref.namespace == "one"]
        assert at <= 3 * SLICE
        assert woken.count("many") == 10 * SLICE


async def test_what_changes_all_the_time_is_one_change_while_they_are_woken(clock: Clock) -> None:
    woken, rounds = Woken(clock, many=10 * SLICE), 0
    async with background.running(woken.stale.run()):
        while woken.count("many") < 10 * SLICE:
            woken.stale.add("many", ["a"])
            rounds += 1
            await asyncio.sleep(0)

        await asyncio.sleep(1)
        assert rounds > 5
        assert woken.count("many") == 20 * SLICE


async def test_of_those_that_take_long_fewer_are_looked_at_until_others_have_their_turn() -> None:
    woken = Woken(BusyClock(), many=10)
    woken.stale.add("many", ["a"])
    assert woken.stale.step()
    assert 0 < len(woken.keys) < 5
    while woken.stale.step():
        pass

    assert woken.count("many") == 10


def test_of_an_ingress_with_thousands_of_secrets_the_first_ones_follow_and_that_is_said() -> None:
    def ingress(count: int) -> dict[str, object]:
        tls = [{"secretName": f"s{number}"} for number in range(count)]
        return {"metadata": {"name": "i", "namespace": "ns"}, "spec": {"tls": tls}}

    assert len(list(services.certificates(ingress(5_000)))) == services.CERTIFICATES
    assert "the first 100 of the Secrets" in services.ingress_remark(ingress(5_000))
    assert services.ingress_remark(ingress(services.CERTIFICATES)) == ""


def test_an_ingress_follows_by_one_of_its_first_services() -> None:
    paths = [{"backend": {"service": {"name": f"s{number // 2}"}}} for number in range(5_000)]
    rules = [{"http": {"paths": paths}}]
    found = list(services.backends({"metadata": {}, "spec": {"rules": rules}}))
    assert found == [f"s{number}" for number in range(services.BACKENDS)]
