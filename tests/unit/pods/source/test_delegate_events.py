"""What users see on a proxy of the Events of its delegate, what it costs, and how it is bounded."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.unit.pods.bound_pods import SPACE, World
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, Unreachable
from vnode.pods import event_record
from vnode.pods.event_record import FIELD
from vnode.pods.source import delegate_events as telling
from vnode.pods.source.delegate_events import DelegateEventReporter

pytestmark = pytest.mark.looptime

STARTED = ["Scheduled", "Pulled", "Created", "Started"]
SUMMARY = "Scheduled: to n1; Pulled: an image; Created: it; Started: it"
WORDS = dict(zip(STARTED, ("to n1", "an image", "it", "it"), strict=True))


@pytest.fixture
async def world(clock):
    return World(clock)


def reporter(world, clock, mode="Summary"):
    made = DelegateEventReporter(
        world.source.client("agent"), world.links, world.proxies.store.get, mode=mode, clock=clock
    )
    world.proxies.subscribe(made.on_pod)
    return made


@asynccontextmanager
async def running(world, clock, mode="Summary", *, seconds=1):
    """Have both controllers at work; inside, they have had that many seconds."""
    events = reporter(world, clock, mode)
    async with background.running(events.run()), world.running(seconds=seconds):
        yield


def entry(world, reason, message="", **fields):
    now = world.source.writer.now()
    return {
        "type": "Normal",
        "reason": reason,
        "message": message,
        "count": 1,
        "first": now,
        "last": now,
        "component": "kubelet",
        "host": "n1",
        **fields,
    }


def warning(world, reason="BackOff", message="Back-off pulling image", **fields):
    return entry(world, reason, message, type="Warning", **fields)


def start(world):
    return [entry(world, reason, message) for reason, message in WORDS.items()]


def report(world, entries, *, phase="Running", name="web"):
    world.target.report(name, **{FIELD: entries, "phase": phase})


def events_of(world):
    """List the Events that a user sees, as (reason, message, count), the oldest first."""
    events = sorted(world.source.all(kinds.EVENTS), key=objects.resource_version)
    return [(each["reason"], each["message"], each["count"]) for each in events]


def asked(world):
    """List the verbs of the reporter's requests to the source."""
    return [each.verb for each in world.source.requests if each.client == "agent"]


async def place(world):
    world.target.add(world.add())


async def test_a_pod_that_goes_well_costs_one_write(world, clock):
    await place(world)
    async with running(world, clock):
        report(world, start(world)[:1], phase="Pending")
        await asyncio.sleep(1)
        assert asked(world) == ["list"]
        report(world, start(world))
        await asyncio.sleep(1)
        assert events_of(world) == [("Started", SUMMARY, 1)]
        world.target.report(podIP="10.0.0.1")
        await asyncio.sleep(600)
        await world.delete()
        report(world, [*start(world), entry(world, "Killing", "Stopping container main")])
        await asyncio.sleep(60)
        assert asked(world) == ["list", "create"]


@pytest.mark.parametrize("mode", ["Summary", "All"])
async def test_the_reason_of_a_planned_place_costs_no_event_of_its_own(world, clock, mode):
    why = "planned here: 4 of 10 by weight 40 (placementpolicy/web)"
    world.target.add(world.add(metadata={"annotations": {keys.PLACED: why}}))
    async with running(world, clock, mode):
        report(world, start(world))
        await asyncio.sleep(1)
        before, _, after = SUMMARY.partition(";")
        expected = f"{before}; {why};{after}" if mode == "Summary" else f"to n1; {why}"
        assert expected in [message for _reason, message, _count in events_of(world)]
        assert asked(world).count("create") == (1 if mode == "Summary" else len(STARTED))


async def test_an_event_is_the_targets_and_about_the_proxy(world, clock):
    await place(world)
    async with running(world, clock):
        report(world, [warning(world, count=3)])
        await asyncio.sleep(1)

    (event,) = world.source.all(kinds.EVENTS)
    assert event["involvedObject"] == objects.reference(world.pod(), "Pod", "v1")
    assert objects.namespace(event) == SPACE
    assert event["source"] == {"component": f"{SPACE}/c2/kubelet", "host": f"{SPACE}/c2/n1"}
    assert event["reportingComponent"] == "vnode.dev/delegate-events"
    assert event["reportingInstance"] == f"{SPACE}/c2"
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "BackOff", 3)
    assert event["firstTimestamp"] == event["lastTimestamp"]


async def test_a_pod_that_is_slow_to_start_says_why_and_then_how_it_went(world, clock):
    await place(world)
    async with running(world, clock):
        pulling = [entry(world, "Pulling", "an image")]
        report(world, pulling, phase="Pending")
        await asyncio.sleep(telling.SUMMARY_DELAY + 1)
        assert events_of(world) == [("Pulling", "Pulling: an image", 1)]
        report(world, [*pulling, entry(world, "Pulled", "an image in 7.5s")])
        await asyncio.sleep(1)
        assert events_of(world) == [("Pulled", "Pulling: an image; Pulled: an image in 7.5s", 1)]
        assert asked(world) == ["list", "create", "patch"]


async def test_a_warning_is_told_at_once_and_what_went_before(world, clock):
    await place(world)
    async with running(world, clock):
        report(world, [*start(world)[:2], warning(world)], phase="Pending")
        await asyncio.sleep(0.1)
        assert events_of(world) == [
            ("Pulled", "Scheduled: to n1; Pulled: an image", 1),
            ("BackOff", "Back-off pulling image", 1),
        ]


async def test_containers_that_start_again_are_no_news_but_a_killed_one_is(world, clock):
    await place(world)
    async with running(world, clock):
        report(world, start(world))
        await asyncio.sleep(1)
        again = [{**each, "count": 2, "message": each["message"] + "1"} for each in start(world)]
        first = [{**each, "message": each["message"] + "0"} for each in start(world)]
        report(world, first)
        await asyncio.sleep(1)
        before = len(asked(world))
        report(world, [*again[2:], *again[:2]])
        await asyncio.sleep(60)
        assert len(asked(world)) == before
        report(world, [*again, entry(world, "Killing", "failed liveness probe")])
        await asyncio.sleep(1)
        assert asked(world)[before:] == ["patch"]
        assert "Killing: failed liveness probe" in events_of(world)[0][1]


async def test_a_count_is_written_once_a_minute(world, clock):
    await place(world)
    async with running(world, clock):
        for number in range(1, 121):
            report(world, [warning(world, count=number)])
            await asyncio.sleep(1)

        await asyncio.sleep(120)
        assert asked(world) == ["list", "create", "patch", "patch"]
        assert events_of(world) == [("BackOff", "Back-off pulling image", 120)]


@pytest.mark.parametrize(
    ("mode", "reasons"),
    [
        ("Summary", ["Started", "BackOff"]),
        ("All", [*STARTED, "BackOff"]),
        ("Warnings", ["BackOff"]),
        ("None", []),
    ],
)
async def test_the_setting_says_what_is_told(world, clock, mode, reasons):
    await place(world)
    async with running(world, clock, mode):
        report(world, [*start(world), warning(world)])
        await asyncio.sleep(60)
        assert [reason for reason, _message, _count in events_of(world)] == reasons
        assert bool(asked(world)) == (mode != "None")


async def test_a_new_leader_tells_nothing_again_and_nothing_less(world, clock):
    await place(world)
    async with running(world, clock):
        report(world, [*start(world), warning(world, "Unhealthy"), warning(world, count=3)])
        await asyncio.sleep(1)

    before = len(asked(world))
    report(world, [*start(world), warning(world), warning(world, "Unhealthy", count=2)])
    async with running(world, clock):
        await asyncio.sleep(telling.RECOUNT + 1)
        assert asked(world)[before:] == ["list", "patch"]
        assert max(events_of(world)) == ("Unhealthy", "Back-off pulling image", 2)


async def test_what_has_expired_is_not_told_again(world, clock):
    await place(world)
    async with running(world, clock):
        report(world, [*start(world), warning(world)])
        await asyncio.sleep(1)

    for event in world.source.all(kinds.EVENTS):
        world.source.remove(kinds.EVENTS, objects.name(event), SPACE)

    await asyncio.sleep(2 * 3600)
    async with running(world, clock):
        await asyncio.sleep(60)
        assert events_of(world) == []
        now = warning(world, count=2)
        report(world, [*start(world), now])
        await asyncio.sleep(telling.RECOUNT)
        assert events_of(world) == [("BackOff", "Back-off pulling image", 2)]


async def test_a_lost_answer_makes_no_second_event(world, clock):
    await place(world)
    world.source.fail(Unreachable("lost"), verb="create", kind=kinds.EVENTS, after=True)
    async with running(world, clock):
        report(world, [warning(world)])
        await asyncio.sleep(60)
        assert events_of(world) == [("BackOff", "Back-off pulling image", 1)]
        assert asked(world) == ["list", "create", "create", "patch"]


async def test_events_wait_while_the_server_is_away_and_a_refused_one_is_given_up(world, clock):
    await place(world)
    fault = world.source.fail(Unreachable("away"), verb="create", kind=kinds.EVENTS, times=None)
    async with running(world, clock):
        report(world, [warning(world)])
        await asyncio.sleep(20)
        assert events_of(world) == []
        fault.clear()
        world.source.fail(Denied(403, "Forbidden", "no"), verb="create", kind=kinds.EVENTS)
        await asyncio.sleep(60)
        assert events_of(world) == []
        report(world, [warning(world, "Unhealthy", "other")])
        await asyncio.sleep(60)
        assert events_of(world) == [("Unhealthy", "other", 1)]


async def test_an_agent_that_may_not_list_events_tells_them_all_the_same(world, clock):
    await place(world)
    denied = Denied(403, "Forbidden", "no")
    world.source.fail(denied, verb="list", kind=kinds.EVENTS, times=None)
    async with running(world, clock):
        report(world, [warning(world)])
        await asyncio.sleep(60)
        assert events_of(world) == [("BackOff", "Back-off pulling image", 1)]


async def test_a_hostile_target_writes_so_many_events_of_a_pod(world, clock):
    await place(world)
    async with running(world, clock):
        for number in range(100):
            report(world, [warning(world, message="x" * number)])
            await asyncio.sleep(6)

        assert asked(world).count("create") <= telling.POD_BURST + 600 * telling.POD_RATE + 1


async def test_a_hostile_target_writes_so_many_events_in_all(world, clock, monkeypatch):
    monkeypatch.setattr(telling, "TARGET_BURST", 10)
    monkeypatch.setattr(telling, "TARGET_RATE", 0.5)
    names = [f"web-{number}" for number in range(40)]
    for name in names:
        world.target.add(world.add(name))

    async with running(world, clock):
        for name in names:
            report(world, [warning(world)], name=name)

        await asyncio.sleep(0.5)
        assert asked(world).count("create") == 10
        await asyncio.sleep(90)
        assert asked(world).count("create") == 40


async def test_a_target_tells_nothing_of_pods_that_are_not_bound_to_it(world, clock):
    pod = world.add("waits", node="")
    world.target.add(pod, allowed=False)
    world.target.add(world.add("web", node="n1"))
    async with running(world, clock, seconds=0):
        report(world, [warning(world)], name="waits")
        report(world, [warning(world)], name="web")
        await asyncio.sleep(60)
        assert events_of(world) == []


ODD = [
    "text",
    {"reason": "x"},
    [],
    ["text", 1, None],
    [{}],
    [{"type": "Odd", "reason": "BackOff", "last": "2026-01-01T00:00:00Z"}],
    [{"type": "Normal", "reason": 1, "last": "2026-01-01T00:00:00Z"}],
    [{"type": "Normal", "reason": "x", "last": "0001-01-01T00:00:00+14:00"}],
    [{"type": "Normal", "reason": "x", "last": 5}],
]


@pytest.mark.parametrize("odd", ODD)
async def test_a_list_of_odd_form_is_no_list(world, clock, odd):
    await place(world)
    async with running(world, clock):
        report(world, odd)
        await asyncio.sleep(60)
        assert events_of(world) == []


async def test_words_of_a_target_are_bounded_and_plain(world, clock):
    await place(world)
    async with running(world, clock):
        evil = warning(
            world,
            "Back\nOff" + "x" * 10_000,
            "a\x1b[31mred\u202e \x00" + "y" * 100_000,
            component="kube\x1blet" + "z" * 10_000,
            count=10**30,
            last="9000-01-01T00:00:00Z",
        )
        report(world, [evil] * 20)
        await asyncio.sleep(1)

    (event,) = world.source.all(kinds.EVENTS)
    assert event["reason"].startswith("Back Offxxx")
    assert len(event["reason"]) <= 64
    assert event["message"].startswith("a [31mred yyy")
    assert len(event["message"]) <= event_record.MESSAGE_LIMIT
    assert event["source"]["component"].startswith(f"{SPACE}/c2/kube letz")
    assert len(event["source"]["component"]) < 200
    assert event["count"] <= 10**6
    assert event["lastTimestamp"] <= world.source.writer.now()


async def test_the_list_does_not_come_to_the_proxys_status(world, clock):
    await place(world)
    async with running(world, clock):
        report(world, start(world))
        await asyncio.sleep(1)
        assert FIELD not in world.status()
        before = len(world.written())
        report(world, [*start(world), warning(world)])
        await asyncio.sleep(60)
        assert len(world.written()) == before
