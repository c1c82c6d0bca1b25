"""What users see on a proxy of the Events of its delegate, and what it costs."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import SPACE, BoundPodsEnvironment
from tests.unit.pods.told_events import (
    STARTED,
    asked,
    entry,
    events_of,
    place,
    report,
    running,
    start,
    warning,
)
from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, Unreachable
from vnode.pods import event_record
from vnode.pods.event_record import FIELD
from vnode.pods.source import delegate_events as telling
from vnode.pods.source import proxy_events

pytestmark = pytest.mark.looptime

SUMMARY = "Scheduled: to n1; Pulled: an image; Created: it; Started: it"


@pytest.fixture
async def env(clock):
    return BoundPodsEnvironment(clock)


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
