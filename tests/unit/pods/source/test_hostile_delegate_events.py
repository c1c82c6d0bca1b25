"""What a target says of Events of its delegates is bounded, and about its own pods."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.bound_pods import SPACE, BoundPodsEnvironment
from tests.unit.pods.told_events import asked, events_of, place, report, running, warning
from vnode.api import kinds, objects
from vnode.pods import event_record
from vnode.pods.source import delegate_events as telling

pytestmark = pytest.mark.looptime

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


@pytest.fixture
async def env(clock):
    return BoundPodsEnvironment(clock)


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
