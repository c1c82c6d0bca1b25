"""The proxy scheduler, from a pending pod to its binding, over targets that reject and hang."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.pods.worlds import Source, Target, is_silent, rejects, reserves
from vnode.api import keys, objects
from vnode.api.errors import Conflict
from vnode.pods.source import rotation

pytestmark = pytest.mark.looptime


def apart(app: str) -> dict:
    """Not two pods of that app in one target."""
    term = {"topologyKey": "target", "labelSelector": {"matchLabels": {"app": app}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}


def only(target: Target) -> dict:
    return {"nodeSelector": {"target": target.node}}


# --- targets that hang


async def slowest(clock, frozen: bool, *, pinned: bool) -> float:
    """Seconds until the last of a burst of pods is bound; one of three targets may be frozen."""
    targets = [Target(name, clock) for name in ("c2", "c3", "c4")]
    source = Source(clock, *targets)
    if frozen:
        targets[0].thawed.clear()

    async with source.running():
        began = clock.monotonic()
        for number in range(120):
            spec = only(targets[1 + number % 2]) if pinned else {}
            source.add(f"p{number}", spec=spec)
            source.add(f"victim{number}", spec=only(targets[0]))

        await source.until_bound(*(f"p{number}" for number in range(120)))
        return max(when for name, when in source.bound.items() if name[0] == "p") - began


async def test_pods_of_other_targets_do_not_wait_for_one_that_hangs(clock):
    assert await slowest(clock, True, pinned=True) <= await slowest(clock, False, pinned=True) * 1.1


async def test_pods_that_fit_anywhere_go_elsewhere_after_two_seconds_of_silence(clock):
    usual = await slowest(clock, False, pinned=False)
    assert await slowest(clock, True, pinned=False) <= 2.0 + usual * 2


async def test_what_is_brought_with_a_pod_holds_up_neither_it_nor_others(clock):
    hung, fine = Target("c2", clock), Target("c3", clock)
    source = Source(clock, hung, fine)
    source.bringing[hung.node] = 30.0
    async with source.running():
        for number in range(4):
            source.add(f"p{number}")

        await source.until_bound(*(f"p{number}" for number in range(4)))
        assert clock.monotonic() < 2.5
        assert all(source.node_of(f"p{number}") == fine.node for number in range(4))


async def test_nothing_is_asked_of_a_target_once_it_is_known_not_to_answer(clock):
    target = Target("c2", clock)
    source = Source(clock, target)
    target.thawed.clear()
    async with source.running():
        for number in range(40):
            source.add(f"p{number}")

        await asyncio.sleep(10)
        assert target.created() == 16
        target.set_healthy(False)
        await source.until_said("p39", "it does not answer")
        assert clock.monotonic() < 11
        target.thawed.set()
        await asyncio.sleep(20)
        assert target.created() == 16

        target.set_healthy(True)
        await source.until_bound(*(f"p{number}" for number in range(40)))
        assert clock.monotonic() < 45


async def test_a_pod_that_waits_for_a_turn_is_looked_at_again_when_its_target_goes_down(clock):
    """With a burst before it that the target takes slowly, it is no silence that sends it on."""
    target, other = Target("c2", clock), Target("c3", clock)
    source = Source(clock, target, other)
    async with source.running():
        target.thawed.clear()
        source.add("p", spec={})
        other.set_healthy(False)
        source.add("q", spec=only(target))
        await asyncio.sleep(1)
        other.set_healthy(True)
        target.set_healthy(False)
        await source.until_bound("p")
        assert clock.monotonic() < 3
        assert source.node_of("p") == other.node


async def test_a_target_that_creates_a_burst_slowly_is_busy_and_not_silent(clock):
    busy, other = Target("c2", clock), Target("c3", clock)

    async def slow() -> None:
        await asyncio.sleep(0.5)

    busy._exchange = slow
    other.taints = [{"key": "k", "effect": "PreferNoSchedule"}]
    source = Source(clock, busy, other)
    async with source.running():
        for number in range(160):
            source.add(f"p{number}")

        await source.until_bound(*(f"p{number}" for number in range(160)))
        assert clock.monotonic() == pytest.approx(5.0, abs=0.5)
        assert other.created() == 0


async def test_a_candidate_that_cannot_be_deleted_now_holds_up_no_pod(clock):
    first, second = Target("c2", clock, rejects), Target("c3", clock)
    source = Source(clock, first, second)
    async with source.running():
        second.set_healthy(False)
        source.add("p")
        await source.until_said("p", "no room here")
        first.thawed.clear()
        cordoned = {**source.nodes.store.get(first.node), "spec": {"unschedulable": True}}
        source.nodes.put(cordoned)
        began = clock.monotonic()
        second.set_healthy(True)
        await source.until_bound("p")
        assert clock.monotonic() - began < 1.5


# --- full targets


async def test_each_attempt_asks_another_full_target_and_soon_the_one_that_makes_room(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(4)]
    source = Source(clock, *targets)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "no room here")
        first = next(target for target in targets if target.created())
        for target in targets:
            target.answer = rejects if target is first else reserves  # by preemption, say

        await source.until_bound("p")
        assert clock.monotonic() < 2
        assert source.node_of("p") != first.node


async def test_targets_are_asked_once_each_in_quick_succession_and_then_rarely(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(3)]
    source = Source(clock, *targets)
    async with source.running():
        source.add("p", cpu="1")
        await asyncio.sleep(15)
        assert [target.created() for target in targets] == [1, 1, 1]
        await asyncio.sleep(600)
        # As many may stay as there are targets, for their autoscalers: nothing is written.
        assert [len(target.requests) for target in targets] == [1, 1, 1]


async def test_with_more_full_targets_than_candidates_may_stay_the_oldest_makes_way(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(5)]
    source = Source(clock, *targets)
    async with source.running():
        source.add("p", cpu="1")
        await asyncio.sleep(30)
        assert [target.created() for target in targets] == [1] * 5
        assert sum(target.candidate("p") is not None for target in targets) == 3
        newest = max(targets, key=lambda target: target.requests[0][1])
        assert newest.candidate("p") is not None
        writes = sum(len(target.requests) for target in targets)
        await asyncio.sleep(600)
        assert sum(len(target.requests) for target in targets) - writes <= 2 * 10


async def test_thousands_of_pods_that_fit_nowhere_move_few_candidates(clock):
    targets = [Target(f"c{number}", clock, rejects) for number in range(5)]
    source = Source(clock, *targets)
    count, minutes = rotation.BURST + 200, 3
    async with source.running():
        for number in range(count):
            source.add(f"p{number}", cpu="1")

        await asyncio.sleep(60 * minutes)
        created = sum(target.created() for target in targets)
        assert created <= count + rotation.BURST + rotation.RATE * 60 * minutes


async def test_a_full_target_is_asked_although_another_seems_to_have_room_and_never_takes_it(clock):
    """Its nodes are of the wrong kind, say."""
    roomy, full = Target("c2", clock, rejects, cpu="100"), Target("c3", clock)
    source = Source(clock, roomy, full)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_bound("p")
        assert source.node_of("p") == full.node
        assert clock.monotonic() < 3


async def test_a_resource_that_no_target_lists_is_asked_for_everywhere(clock):
    """As those are that targets offer by DRA only."""
    without, having = Target("c2", clock, rejects), Target("c3", clock)
    source = Source(clock, without, having)
    async with source.running():
        for number in range(6):
            requests = {"requests": {"example.com/gpu": "1"}}
            spec = {"containers": [{"name": "main", "resources": requests}]}
            source.add(f"p{number}", spec=spec)

        await source.until_bound(*(f"p{number}" for number in range(6)))
        assert {source.node_of(f"p{number}") for number in range(6)} == {having.node}
        assert clock.monotonic() < 3


async def test_a_pod_without_reservation_is_not_tried_where_nothing_would_hold_it(clock):
    target = Target("c2", clock, is_silent)
    source = Source(clock, target)
    async with source.running():
        source.add("p", cpu="1", annotations={keys.NO_RESERVATION: ""})
        await source.until_said("p", "Insufficient cpu")
        await asyncio.sleep(100)
        assert not target.requests
        target.set_room(cpu="1")
        await source.until_bound("p")


# --- late reservations


async def test_a_late_reservation_does_not_overrule_anti_affinity(clock):
    target = Target("c2", clock, rejects)
    source = Source(clock, target)
    async with source.running():
        labels = {"app": "a"}
        source.add("big", cpu="1", labels=labels, spec=apart("a"))
        await source.until_said("big", "no room here")
        target.answer = reserves
        source.add("small", labels=labels, spec=apart("a"))
        await source.until_bound("small")
        target.set_room(cpu="4")
        reserves(target, target.candidate("big"))
        await source.until_said("big", "didn't match pod anti-affinity rules")
        await asyncio.sleep(100)
        assert not source.node_of("big")
        assert target.candidate("big") is None


async def test_a_late_reservation_does_not_overrule_topology_spread(clock):
    target, other = Target("c2", clock, rejects), Target("c3", clock, rejects)
    source = Source(clock, target, other)
    constraint = {
        "topologyKey": "target",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    spec = {"topologySpreadConstraints": [constraint]}
    async with source.running():
        source.add("late", cpu="1", labels={"app": "a"}, spec=spec)
        await asyncio.sleep(30)
        assert target.candidate("late") is not None
        target.answer = reserves
        source.add("early", labels={"app": "a"}, spec=only(target))
        await source.until_bound("early")
        reserves(target, target.candidate("late"))
        await source.until_said("late", "would be 2, maxSkew is 1")
        reserves(other, other.candidate("late"))
        await source.until_bound("late")
        assert source.node_of("late") == other.node


async def test_late_reservations_of_two_pods_that_must_not_meet_bind_only_one(clock):
    target = Target("c2", clock, rejects)
    source = Source(clock, target)
    async with source.running():
        for name in ("a", "b"):
            source.add(name, cpu="1", labels={"app": "a"}, spec=apart("a"))

        await source.until_said("a", "no room here")
        await asyncio.sleep(100)
        found = [target.candidate(name) for name in ("a", "b")]
        for candidate in found:
            if candidate is not None:
                reserves(target, candidate)

        await source.proxies.until(lambda: bool(source.node_of("a") or source.node_of("b")))
        await asyncio.sleep(100)
        assert not (source.node_of("a") and source.node_of("b"))


async def test_filters_are_asked_again_before_a_pod_is_bound(clock):
    """Meanwhile its target was cordoned."""
    target = Target("c2", clock, is_silent)
    source = Source(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        node = source.nodes.store.get(target.node)
        source.nodes.put({**node, "spec": {"unschedulable": True}})
        reserves(target, target.candidate("p"))
        await source.until_said("p", "cordoned")
        assert not source.node_of("p")
        assert target.candidate("p") is None
        target.answer = reserves
        source.nodes.put(node)
        await source.until_bound("p")


@pytest.mark.parametrize("bound", [False, True])
async def test_a_target_cannot_claim_a_pod_that_must_not_be_there(clock, bound):
    """Unless the pod is bound there, and no event has told of that yet."""
    target = Target("c2", clock, is_silent)
    source = Source(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(5)
        node = source.nodes.store.get(target.node)
        source.nodes.put({**node, "spec": {"unschedulable": True}})
        if bound:
            source.live["p"] = {**source.pod("p"), "spec": {"nodeName": target.node}}

        target.change(target.candidate("p"), **{keys.IS_ALLOWED: "true"})
        await source.until_said("p", "cordoned")
        await asyncio.sleep(10)
        assert (target.candidate("p") is None) is not bound
        assert not source.node_of("p")


async def test_no_candidate_goes_where_another_pod_came_meanwhile(clock):
    silent, other = Target("c2", clock, is_silent), Target("c3", clock)
    other.taints = [{"key": "k", "effect": "PreferNoSchedule"}]
    source = Source(clock, silent, other)
    async with source.running():
        source.add("a", labels={"app": "a"}, spec=apart("a"))
        await asyncio.sleep(0.5)
        assert silent.candidate("a") is not None
        source.add("b", labels={"app": "a"}, spec=only(other) | apart("a"))
        await source.until_bound("b")
        await asyncio.sleep(10)
        assert not source.node_of("a")
        assert other.created() == 1


async def test_a_reservation_stands_though_it_is_what_makes_its_target_full(clock):
    target = Target("c2", clock, rejects, cpu="1")
    source = Source(clock, target, plugins={"plugins": {"disabled": [{"name": "CandidateProbe"}]}})
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "no room here")
        target.set_room(cpu="0")
        reserves(target, target.candidate("p"))
        await source.until_bound("p")


# --- books


async def test_a_burst_without_reservation_fills_each_target_to_its_room(clock):
    small, large = Target("c2", clock, cpu="6"), Target("c3", clock, cpu="11")
    source = Source(clock, small, large)
    async with source.running():
        for number in range(20):
            source.add(f"p{number}", cpu="1", annotations={keys.NO_RESERVATION: ""})

        await asyncio.sleep(5)
        nodes = [source.node_of(f"p{number}") for number in range(20)]
        assert (nodes.count(small.node), nodes.count(large.node)) == (6, 11)


async def test_a_pod_without_reservation_that_is_not_bound_is_not_counted(clock):
    target = Target("c2", clock, cpu="1")
    source = Source(clock, target)
    held = asyncio.Event()
    bind = source.create

    async def refuse(*args, **more):
        held.set()
        raise Conflict(409, "Conflict", "not now")

    source.create = refuse
    async with source.running():
        source.add("p", cpu="1", annotations={keys.NO_RESERVATION: ""})
        await held.wait()
        source.proxies.remove(source.pod("p"))
        await asyncio.sleep(0.1)
        source.create = bind
        source.add("q", cpu="1", annotations={keys.NO_RESERVATION: ""})
        await source.until_bound("q")
        assert clock.monotonic() < 1


@pytest.mark.parametrize(
    "end",
    [
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Failed"}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
    ids=["succeeded", "failed", "ending"],
)
async def test_a_pod_that_finishes_or_begins_to_end_wakes_whom_it_kept_out(clock, end):
    target = Target("c2", clock)
    source = Source(clock, target)
    async with source.running():
        source.add("first", labels={"app": "a"}, spec=apart("a"))
        await source.until_bound("first")
        source.add("second", labels={"app": "a"}, spec=apart("a"))
        await source.until_said("second", "didn't match pod anti-affinity rules")
        await asyncio.sleep(5)
        source.change("first", **end)
        began = clock.monotonic()
        await source.until_bound("second")
        assert clock.monotonic() - began < 1


async def test_a_pod_that_gives_up_wakes_whom_its_candidate_kept_out(clock):
    target = Target("c2", clock, is_silent)
    source = Source(clock, target)
    async with source.running():
        source.add("first", cpu="1", labels={"app": "a"}, spec=apart("a"))
        await asyncio.sleep(0.5)
        target.answer = reserves
        source.add("second", labels={"app": "a"}, spec=apart("a"))
        await source.until_said("second", "didn't match pod anti-affinity rules")
        rejects(target, target.candidate("first"))
        await source.until_bound("second")
        assert clock.monotonic() < 3


# --- candidates that go


@pytest.mark.parametrize("asleep", [True, False], ids=["pod asleep", "pod in its phase"])
async def test_a_candidate_that_is_deleted_in_its_target_is_made_anew(clock, asleep):
    target = Target("c2", clock, rejects if asleep else is_silent)
    source = Source(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(10)
        target.answer = reserves
        target.remove(target.candidate("p"))
        await source.until_bound("p")
        assert clock.monotonic() < 13


async def test_a_target_that_deletes_every_candidate_is_not_asked_without_end(clock):
    target = Target("c2", clock, Target.remove)
    source = Source(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(100)
        assert target.created() < 20


async def test_a_candidate_whose_delegate_was_deleted_is_replaced(clock):
    target = Target("c2", clock, rejects)
    source = Source(clock, target)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "no room here")
        await asyncio.sleep(10)
        before = objects.uid(target.candidate("p"))
        target.answer = reserves
        target.change(target.candidate("p"), **{keys.POD_MISSING_SINCE: "2026-01-01T00:00:00Z"})
        await source.until_bound("p")
        assert objects.uid(target.candidate("p")) != before
        assert clock.monotonic() < 20


async def test_a_quota_that_many_creations_change_at_once_is_no_final_no(clock):
    target = Target("c2", clock)
    target.errors = [Conflict(409, "Conflict", "the object has been modified")]
    source = Source(clock, target)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        assert clock.monotonic() < 2
