"""What targets send takes a quarter of the event loop over time, whatever each event costs."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.apiserver import links
from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import Gone
from vnode.api.metered import Metered
from vnode.api.target_key import TargetKey
from vnode.kube import read_limit, reflector
from vnode.kube.informer import Informer
from vnode.kube.read_limit import ReadTime, ReadTimes
from vnode.telemetry import turn_waits

pytestmark = pytest.mark.looptime

COST = 0.02  # seconds that subscribers take for an event
SECONDS = 10


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing take time of the processor but subscribers."""
    monkeypatch.setattr(read_limit, "AT_ONCE", 1.0)
    monkeypatch.setattr(reflector, "Metered", partial(Metered, timer=lambda: Costly.worked_by_all))


class WorkClock:
    """The clock of a test, on which work takes time, too: others have their turn after it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.now, self.sleep = clock.now, clock.sleep

    def monotonic(self) -> float:
        return self._clock.monotonic() + Costly.worked_by_all


class Costly:
    """A server with ConfigMaps that change, and an informer whose subscriber takes long."""

    worked_by_all = 0.0

    def __init__(self, name: str, clock: Clock, time: ReadTime | None, objects: int = 1) -> None:
        self.server = APIServer(name, clock)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        for number in range(objects):
            metadata = {"namespace": "ns", "name": f"c{number}"}
            self.server.add(kinds.CONFIG_MAPS, {"metadata": metadata})

        client, self.worked = self.server.client(), 0.0
        accept = None if time is None else lambda _obj: True
        if time is not None:
            client.read_limiter.time = time

        self.informer = Informer(client, kinds.CONFIG_MAPS, accept=accept, clock=WorkClock(clock))
        self.informer.subscribe(self._on_event)

    def _on_event(self, _old: object, _new: object) -> None:
        self.worked += COST
        Costly.worked_by_all += COST

    def change(self, number: int, name: str = "c0") -> None:
        def do(obj: dict[str, object]) -> None:
            obj["data"] = {"number": str(number)}

        self.server.change(kinds.CONFIG_MAPS, name, "ns", do)

    @property
    def number(self) -> int:
        return int((self.informer.store.get("ns/c0") or {})["data"]["number"])


async def flood(each: Costly) -> None:
    """Change an object a hundred times a second, which is work for two event loops."""
    for number in range(SECONDS * 100):
        each.change(number)
        await asyncio.sleep(0.01)


def most(seconds: float) -> float:
    return read_limit.AT_ONCE + (seconds + 1) * read_limit.SHARE + 1


async def test_costly_events_without_end_take_a_share_of_the_loop_down_to_the_last(
    clock: Clock,
) -> None:
    loud = Costly("loud", clock, ReadTimes().of("a"))
    async with links.following(loud.informer):
        await flood(loud)
        assert most(SECONDS) - 2 <= loud.worked <= most(SECONDS)
        await asyncio.sleep(SECONDS * 100 * COST / read_limit.SHARE)
        assert loud.number == SECONDS * 100 - 1


async def test_who_waits_for_that_is_shown(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_waits, "_places", {})
    loud, every = Costly("loud", clock, ReadTimes().of("a")), ReadTimes().of("", "east")
    async with links.following(loud.informer):
        await flood(loud)

    await every.wait(1.0)
    shown = turn_waits.of(read_limit.WORK).shown()
    assert shown.keys() == {"a", ""}
    assert shown[""] == pytest.approx(1.0, rel=0.1)


async def test_servers_of_one_owner_share_and_those_of_others_wait_for_none(clock: Clock) -> None:
    times = ReadTimes()
    loud = [Costly(f"loud{n}", clock, times.of("a")) for n in range(2)]
    calm, own = Costly("calm", clock, times.of("b")), Costly("own", clock, None)
    async with links.following(*(each.informer for each in (*loud, calm, own))):
        flooding = [asyncio.create_task(flood(each)) for each in (*loud, own)]
        for number in range(SECONDS):
            await asyncio.sleep(0.98)
            calm.change(number)
            await asyncio.sleep(0.02)
            assert calm.number == number

        await asyncio.gather(*flooding)
        await asyncio.sleep(0.01)
        assert own.number == SECONDS * 100 - 1
        assert sum(each.worked for each in loud) <= most(SECONDS)


async def test_whoever_connects_anew_has_not_got_more_for_that(clock: Clock) -> None:
    times, worked = ReadTimes(), 0.0
    for _ in range(SECONDS):
        loud = Costly("loud", clock, times.of("", TargetKey("", "a")))
        async with links.following(loud.informer):
            for number in range(100):
                loud.change(number)
                await asyncio.sleep(0.01)

        worked += loud.worked

    assert worked <= most(SECONDS) + 2 * SECONDS * COST  # a list is not waited for


async def test_lists_of_objects_that_all_change_count_as_well(clock: Clock) -> None:
    loud = Costly("loud", clock, ReadTimes().of("a"), objects=50)
    async with links.following(loud.informer):
        loud.server.fail(
            Gone(410, "Expired", "too old"),
            verb="watch",
            when=lambda _request: loud.server.count("watch") % 2 == 0,
            times=None,
        )
        for number in range(SECONDS):
            for name in range(50):
                loud.change(number, f"c{name}")

            loud.server.end_watches()
            await asyncio.sleep(1)

    assert loud.worked <= most(SECONDS) + 100 * COST  # a list is taken whole
