"""What users see on a proxy of the Events of its delegate, what it costs, and how it is bounded."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.unit.pods.bound_pods import SPACE, BoundPodsEnvironment
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, Unreachable
from vnode.pods import event_record
from vnode.pods.event_record import FIELD
from vnode.pods.source import delegate_events as telling
from vnode.pods.source import proxy_events
from vnode.pods.source.delegate_events import DelegateEventReporter

pytestmark = pytest.mark.looptime

STARTED = ["Scheduled", "Pulled", "Created", "Started"]
SUMMARY = "Scheduled: to n1; Pulled: an image; Created: it; Started: it"
WORDS = dict(zip(STARTED, ("to n1", "an image", "it", "it"), strict=True))


@pytest.fixture
async def env(clock):
    return BoundPodsEnvironment(clock)


def reporter(env, clock, mode="Summary"):
    made = DelegateEventReporter(
        env.source.client("agent"), env.links, env.proxies.store.get, mode=mode, clock=clock
    )
    env.proxies.subscribe(made.on_pod)
    return made


@asynccontextmanager
async def running(env, clock, mode="Summary", *, seconds=1):
    """Have both controllers at work; inside, they have had that many seconds."""
    events = reporter(env, clock, mode)
    async with background.running(events.run()), env.running(seconds=seconds):
        yield


def entry(env, reason, message="", **fields):
    now = env.source.writer.now()
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


def warning(env, reason="BackOff", message="Back-off pulling image", **fields):
    return entry(env, reason, message, type="Warning", **fields)


def start(env):
    return [entry(env, reason, message) for reason, message in WORDS.items()]


def report(env, entries, *, phase="Running", name="web"):
    env.target.report(name, **{FIELD: entries, "phase": phase})


def events_of(env):
    """List the Events that a user sees, as (reason, message, count), the oldest first."""
    events = sorted(env.source.all(kinds.EVENTS), key=objects.resource_version)
    return [(each["reason"], each["message"], each["count"]) for each in events]


def asked(env):
    """List the verbs of the reporter's requests to the source."""
    return [each.verb for each in env.source.requests if each.client == "agent"]


async def place(env):
    env.target.add(env.add())


async def test_a_pod_that_goes_well_costs_one_write(env, clock):
    await place(env)
    async with running(env, clock):
        report(env, start(env)[:1], phase="Pending")
        await asyncio.sleep(1)
        assert asked(env) == ["list"]
        report(env, start(env))
        await asyncio.sleep(1)
        assert events_of(env) == [("Started", SUMMARY, 1)]
        env.target.report(podIP="10.0.0.1")
        await asyncio.sleep(600)
        await env.delete()
        report(env, [*start(env), entry(env, "Killing", "Stopping container main")])
        await asyncio.sleep(60)
        assert asked(env) == ["list", "create"]


@pytest.mark.parametrize("mode", ["Summary", "All"])
async def test_the_reason_of_a_planned_place_costs_no_event_of_its_own(env, clock, mode):
    why = "planned here: 4 of 10 by weight 40 (placementpolicy/web)"
    env.target.add(env.add(metadata={"annotations": {keys.PLACED: why}}))
    async with running(env, clock, mode):
        report(env, start(env))
        await asyncio.sleep(1)
        before, _, after = SUMMARY.partition(";")
        expected = f"{before}; {why};{after}" if mode == "Summary" else f"to n1; {why}"
        assert expected in [message for _reason, message, _count in events_of(env)]
        assert asked(env).count("create") == (1 if mode == "Summary" else len(STARTED))


@pytest.mark.parametrize("mode", ["Summary", "All"])
async def test_an_event_keeps_the_container_that_it_is_about(env, clock, mode):
    paths = ["spec.containers{main}", "spec.containers{sidecar}"]
    entries = [
        made(env, reason, "of it", field_path=path)
        for path in paths
        for reason, made in (("Started", entry), ("Unhealthy", warning))
    ]
    await place(env)
    async with running(env, clock, mode):
        report(env, entries)
        await asyncio.sleep(1)
        found = [
            (event["reason"], event["involvedObject"].get("fieldPath", ""))
            for event in env.source.all(kinds.EVENTS)
        ]
        started = [("Started", "")] if mode == "Summary" else [("Started", path) for path in paths]
        assert sorted(found) == [*started, *(("Unhealthy", path) for path in paths)]
        if mode == "Summary":
            assert ("Started", "Started: of it", 1) in events_of(env)


async def test_an_event_is_the_targets_and_about_the_proxy(env, clock):
    await place(env)
    async with running(env, clock):
        report(env, [warning(env, count=3)])
        await asyncio.sleep(1)

    (event,) = env.source.all(kinds.EVENTS)
    assert event["involvedObject"] == objects.reference(env.pod(), "Pod", "v1")
    assert objects.namespace(event) == SPACE
    assert event["source"] == {"component": f"{SPACE}/c2/kubelet", "host": f"{SPACE}/c2/n1"}
    assert event["reportingComponent"] == "vnode.dev/delegate-events"
    assert event["reportingInstance"] == f"{SPACE}/c2"
    assert (event["type"], event["reason"], event["count"]) == ("Warning", "BackOff", 3)
    assert event["firstTimestamp"] == event["lastTimestamp"]


async def test_a_pod_that_is_slow_to_start_says_why_and_then_how_it_went(env, clock):
    await place(env)
    async with running(env, clock):
        pulling = [entry(env, "Pulling", "an image")]
        report(env, pulling, phase="Pending")
        await asyncio.sleep(telling.SUMMARY_DELAY + 1)
        assert events_of(env) == [("Pulling", "Pulling: an image", 1)]
        report(env, [*pulling, entry(env, "Pulled", "an image in 7.5s")])
        await asyncio.sleep(1)
        assert events_of(env) == [("Pulled", "Pulling: an image; Pulled: an image in 7.5s", 1)]
        assert asked(env) == ["list", "create", "patch"]


async def test_a_warning_is_told_at_once_and_what_went_before(env, clock):
    await place(env)
    async with running(env, clock):
        report(env, [*start(env)[:2], warning(env)], phase="Pending")
        await asyncio.sleep(0.1)
        assert events_of(env) == [
            ("Pulled", "Scheduled: to n1; Pulled: an image", 1),
            ("BackOff", "Back-off pulling image", 1),
        ]


async def test_containers_that_start_again_are_no_news_but_a_killed_one_is(env, clock):
    await place(env)
    async with running(env, clock):
        report(env, start(env))
        await asyncio.sleep(1)
        again = [{**each, "count": 2, "message": each["message"] + "1"} for each in start(env)]
        first = [{**each, "message": each["message"] + "0"} for each in start(env)]
        report(env, first)
        await asyncio.sleep(1)
        before = len(asked(env))
        report(env, [*again[2:], *again[:2]])
        await asyncio.sleep(60)
        assert len(asked(env)) == before
        report(env, [*again, entry(env, "Killing", "failed liveness probe")])
        await asyncio.sleep(1)
        assert asked(env)[before:] == ["patch"]
        assert "Killing: failed liveness probe" in events_of(env)[0][1]


async def test_a_count_is_written_once_a_minute(env, clock):
    await place(env)
    async with running(env, clock):
        for number in range(1, 121):
            report(env, [warning(env, count=number)])
            await asyncio.sleep(1)

        await asyncio.sleep(120)
        assert asked(env) == ["list", "create", "patch", "patch"]
        assert events_of(env) == [("BackOff", "Back-off pulling image", 120)]


@pytest.mark.parametrize(
    ("mode", "reasons"),
    [
        ("Summary", ["Started", "BackOff"]),
        ("All", [*STARTED, "BackOff"]),
        ("Warnings", ["BackOff"]),
        ("None", []),
    ],
)
async def test_the_setting_says_what_is_told(env, clock, mode, reasons):
    await place(env)
    async with running(env, clock, mode):
        report(env, [*start(env), warning(env)])
        await asyncio.sleep(60)
        assert [reason for reason, _message, _count in events_of(env)] == reasons
        assert bool(asked(env)) == (mode != "None")


async def test_a_new_leader_tells_nothing_again_and_nothing_less(env, clock):
    await place(env)
    async with running(env, clock):
        report(env, [*start(env), warning(env, "Unhealthy"), warning(env, count=3)])
        await asyncio.sleep(1)

    before = len(asked(env))
    report(env, [*start(env), warning(env), warning(env, "Unhealthy", count=2)])
    async with running(env, clock):
        await asyncio.sleep(telling.RECOUNT + 1)
        assert asked(env)[before:] == ["list", "patch"]
        assert max(events_of(env)) == ("Unhealthy", "Back-off pulling image", 2)


async def test_what_has_expired_is_not_told_again(env, clock):
    await place(env)
    async with running(env, clock):
        report(env, [*start(env), warning(env)])
        await asyncio.sleep(1)

    for event in env.source.all(kinds.EVENTS):
        env.source.remove(kinds.EVENTS, objects.name(event), SPACE)

    await asyncio.sleep(2 * 3600)
    async with running(env, clock):
        await asyncio.sleep(60)
        assert events_of(env) == []
        now = warning(env, count=2)
        report(env, [*start(env), now])
        await asyncio.sleep(telling.RECOUNT)
        assert events_of(env) == [("BackOff", "Back-off pulling image", 2)]


async def test_a_lost_answer_makes_no_second_event(env, clock):
    await place(env)
    env.source.fail(Unreachable("lost"), verb="create", kind=kinds.EVENTS, after=True)
    async with running(env, clock):
        report(env, [warning(env)])
        await asyncio.sleep(60)
        assert events_of(env) == [("BackOff", "Back-off pulling image", 1)]
        assert asked(env) == ["list", "create", "create", "patch"]


async def test_events_wait_while_the_server_is_away_and_a_refused_one_is_given_up(env, clock):
    await place(env)
    fault = env.source.fail(Unreachable("away"), verb="create", kind=kinds.EVENTS, times=None)
    async with running(env, clock):
        report(env, [warning(env)])
        await asyncio.sleep(20)
        assert events_of(env) == []
        fault.clear()
        env.source.fail(Denied(403, "Forbidden", "no"), verb="create", kind=kinds.EVENTS)
        await asyncio.sleep(60)
        assert events_of(env) == []
        report(env, [warning(env, "Unhealthy", "other")])
        await asyncio.sleep(60)
        assert events_of(env) == [("Unhealthy", "other", 1)]


async def test_an_agent_that_may_not_list_events_tells_them_all_the_same(env, clock):
    await place(env)
    denied = Denied(403, "Forbidden", "no")
    env.source.fail(denied, verb="list", kind=kinds.EVENTS, times=None)
    async with running(env, clock):
        report(env, [warning(env)])
        await asyncio.sleep(60)
        assert events_of(env) == [("BackOff", "Back-off pulling image", 1)]


async def test_a_hostile_target_writes_so_many_events_of_a_pod(env, clock):
    await place(env)
    async with running(env, clock):
        for number in range(100):
            report(env, [warning(env, message="x" * number)])
            await asyncio.sleep(6)

        assert asked(env).count("create") <= telling.POD_BURST + 600 * telling.POD_RATE + 1


async def test_a_hostile_target_writes_so_many_events_in_all(env, clock, monkeypatch):
    monkeypatch.setattr(telling, "TARGET_BURST", 10)
    monkeypatch.setattr(telling, "TARGET_RATE", 0.5)
    names = [f"web-{number}" for number in range(40)]
    for name in names:
        env.target.add(env.add(name))

    async with running(env, clock):
        for name in names:
            report(env, [warning(env)], name=name)

        await asyncio.sleep(0.5)
        assert asked(env).count("create") == 10
        await asyncio.sleep(90)
        assert asked(env).count("create") == 40


async def test_a_target_tells_nothing_of_pods_that_are_not_bound_to_it(env, clock):
    pod = env.add("waits", node="")
    env.target.add(pod, allowed=False)
    env.target.add(env.add("web", node="n1"))
    async with running(env, clock, seconds=0):
        report(env, [warning(env)], name="waits")
        report(env, [warning(env)], name="web")
        await asyncio.sleep(60)
        assert events_of(env) == []


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
async def test_a_list_of_odd_form_is_no_list(env, clock, odd):
    await place(env)
    async with running(env, clock):
        report(env, odd)
        await asyncio.sleep(60)
        assert events_of(env) == []


async def test_words_of_a_target_are_bounded_and_plain(env, clock):
    await place(env)
    async with running(env, clock):
        evil = warning(
            env,
            "Back\nOff" + "x" * 10_000,
            "a\x1b[31mred\u202e \x00" + "y" * 100_000,
            component="kube\x1blet" + "z" * 10_000,
            count=10**30,
            last="9000-01-01T00:00:00Z",
        )
        report(env, [evil] * 20)
        await asyncio.sleep(1)

    (event,) = env.source.all(kinds.EVENTS)
    assert event["reason"].startswith("Back Offxxx")
    assert len(event["reason"]) <= 64
    assert event["message"].startswith("a [31mred yyy")
    assert len(event["message"]) <= event_record.MESSAGE_LIMIT
    assert event["source"]["component"].startswith(f"{SPACE}/c2/kube letz")
    assert len(event["source"]["component"]) < 200
    assert event["count"] <= 10**6
    assert event["lastTimestamp"] <= env.source.writer.now()


async def test_the_list_does_not_come_to_the_proxys_status(env, clock):
    await place(env)
    async with running(env, clock):
        report(env, start(env))
        await asyncio.sleep(1)
        assert FIELD not in env.status()
        before = len(env.written())
        report(env, [*start(env), warning(env)])
        await asyncio.sleep(60)
        assert len(env.written()) == before


async def test_what_is_to_be_told_of_a_pod_is_worked_out_once_each_time(env, clock, monkeypatch):
    await place(env)
    looks = []

    def note(module, name):
        original = getattr(module, name)

        def noted(*args, **rest):
            looks.append(name)
            return original(*args, **rest)

        monkeypatch.setattr(module, name, noted)

    note(event_record, "read")
    note(proxy_events, "wanted")
    report(env, start(env))
    async with running(env, clock):
        assert looks.count("wanted") == looks.count("read") > 0
