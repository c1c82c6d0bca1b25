"""The proxy scheduler, from a pending pod to its binding, over targets that reject and hang."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tests.unit.pods.clusters import SourceCluster, apart
from tests.unit.pods.targets import Target, is_silent, only, rejects, reserves
from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict
from vnode.pods.source.scheduler import ProxyScheduler

pytestmark = pytest.mark.looptime


# --- targets that hang


async def slowest(clock, frozen: bool, *, pinned: bool) -> float:
    """Measure the seconds until a burst of pods is bound; one of three targets may be frozen."""
    targets = [Target(name, clock) for name in ("c2", "c3", "c4")]
    source = SourceCluster(clock, *targets)
    async with source.running():
        if frozen:
            targets[0].server.freeze()

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
    source = SourceCluster(clock, hung, fine)
    source.bringing[hung.node] = 30.0
    async with source.running():
        for number in range(4):
            source.add(f"p{number}")

        await source.until_bound(*(f"p{number}" for number in range(4)))
        assert clock.monotonic() < 2.5
        assert all(source.node_of(f"p{number}") == fine.node for number in range(4))


async def test_nothing_is_asked_of_a_target_once_it_is_known_not_to_answer(clock):
    target = Target("c2", clock)
    source = SourceCluster(clock, target)
    async with source.running():
        target.server.freeze()
        for number in range(40):
            source.add(f"p{number}")

        await asyncio.sleep(10)
        assert target.asked("create") == 16
        target.set_healthy(False)
        await source.until_said("p39", "it does not answer")
        assert clock.monotonic() < 11
        target.server.thaw()
        await asyncio.sleep(20)
        assert target.asked("create") == 16

        target.set_healthy(True)
        await source.until_bound(*(f"p{number}" for number in range(40)))
        assert clock.monotonic() < 45


async def test_a_pod_that_waits_for_a_turn_is_looked_at_again_when_its_target_goes_down(clock):
    """With a burst before it that the target takes slowly, it is no silence that sends it on."""
    target, other = Target("c2", clock), Target("c3", clock)
    source = SourceCluster(clock, target, other)
    async with source.running():
        target.server.freeze()
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
    busy.server.fail(None, verb="create", delay=0.5, times=None)
    other.taints = [{"key": "k", "effect": "PreferNoSchedule"}]
    source = SourceCluster(clock, busy, other)
    async with source.running():
        for number in range(160):
            source.add(f"p{number}")

        await source.until_bound(*(f"p{number}" for number in range(160)))
        # Ten rounds of 16 requests, after a first one of eight.
        assert clock.monotonic() == pytest.approx(5.5, abs=0.5)
        assert other.asked("create") == 0


async def test_a_candidate_that_cannot_be_deleted_now_holds_up_no_pod(clock):
    first, second = Target("c2", clock, rejects), Target("c3", clock)
    source = SourceCluster(clock, first, second)
    async with source.running():
        second.set_healthy(False)
        source.add("p")
        await source.until_said("p", "no room here")
        first.server.freeze()
        source.cordon(first)
        began = clock.monotonic()
        second.set_healthy(True)
        await source.until_bound("p")
        assert clock.monotonic() - began < 1.5


# --- books


async def test_a_burst_without_reservation_fills_each_target_to_its_room(clock):
    small, large = Target("c2", clock, cpu="6"), Target("c3", clock, cpu="11")
    source = SourceCluster(clock, small, large)
    async with source.running():
        for number in range(20):
            source.add(f"p{number}", cpu="1", annotations={keys.NO_RESERVATION: ""})

        await asyncio.sleep(5)
        nodes = [source.node_of(f"p{number}") for number in range(20)]
        assert (nodes.count(small.node), nodes.count(large.node)) == (6, 11)


async def test_a_pod_without_reservation_that_is_not_bound_is_not_counted(clock):
    target = Target("c2", clock, cpu="1")
    source = SourceCluster(clock, target)
    source.server.fail(Conflict(409, "Conflict", "not now"), subresource="binding")
    async with source.running():
        source.add("p", cpu="1", annotations={keys.NO_RESERVATION: ""})
        await asyncio.sleep(0.05)
        assert source.bindings == ["p"]
        source.remove("p")
        await asyncio.sleep(0.1)
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
    source = SourceCluster(clock, target)
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
    source = SourceCluster(clock, target)
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
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(10)
        target.answer = reserves
        target.remove(target.candidate("p"))
        await source.until_bound("p")
        assert clock.monotonic() < 13


async def test_a_target_that_deletes_every_candidate_is_not_asked_without_end(clock):
    target = Target("c2", clock, Target.remove)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(100)
        assert target.asked("create") < 20


async def test_a_candidate_whose_delegate_was_deleted_is_replaced(clock):
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", cpu="1")
        await source.until_said("p", "no room here")
        await asyncio.sleep(10)
        before = objects.uid(target.candidate("p"))
        target.answer = reserves
        target.annotate(target.candidate("p"), **{keys.POD_MISSING_SINCE: "2026-01-01T00:00:00Z"})
        await source.until_bound("p")
        assert objects.uid(target.candidate("p")) != before
        assert clock.monotonic() < 20


async def test_a_quota_that_many_creations_change_at_once_is_no_final_no(clock):
    target = Target("c2", clock)
    error = Conflict(409, "Conflict", "the object has been modified")
    target.server.fail(error, verb="create")
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_bound("p")
        assert clock.monotonic() < 2


# --- namespaces that take no part


async def test_a_pod_of_a_namespace_without_the_label_waits_for_it_and_says_so(clock):
    target = Target("c2", clock)
    source = SourceCluster(clock, target, label_required=True)
    async with source.running():
        source.add("p")
        await asyncio.sleep(100)
        assert target.server.all(kinds.POD_CHAPERONS) == []
        condition = objects.condition(source.pod("p"), "PodScheduled") or {}
        assert condition["message"].startswith("0/1 targets: c2: namespace default does not have")
        source.label_namespace()
        await source.until_bound("p")
        assert source.node_of("p") == target.node


async def test_nothing_is_tried_for_pods_of_a_namespace_that_is_being_terminated(clock):
    target = Target("c2", clock)
    source = SourceCluster(clock, target)
    ending = {"name": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    source.server.add(kinds.NAMESPACES, {"metadata": ending})
    async with source.running():
        source.add("p")
        await asyncio.sleep(100)
        assert target.server.received(kind=kinds.POD_CHAPERONS, verb="create") == []
        condition = objects.condition(source.pod("p"), "PodScheduled") or {}
        assert condition["message"] == "0/1 targets: c2: namespace default is being terminated"


# --- classes that a target lacks


async def test_no_candidate_is_created_where_a_class_is_missing_until_it_is_there(clock):
    lacks, other = Target("c2", clock), Target("c3", clock)
    source = SourceCluster(clock, lacks, other)
    for target in (lacks, other):
        target.set_classes([], ["low"])

    async with source.running():
        source.add("p", spec={"runtimeClassName": "gvisor", "priorityClassName": "high"})
        await source.until_said("p", 'c2, c3: RuntimeClass "gvisor" not found: create it in')
        await source.until_said("p", 'PriorityClass "high" not found: create it in')
        other.set_classes(["gvisor"], ["high", "low"])
        await source.until_bound("p")

    assert source.node_of("p") == other.node
    assert (lacks.asked("create"), other.asked("create")) == (0, 1)
    assert clock.monotonic() < 30  # not the minute after which all pods are tried


async def test_the_condition_of_a_pending_pod_says_which_generation_it_is_about(clock):
    source = SourceCluster(clock, Target("c2", clock, rejects))
    async with source.running():
        source.add("p", generation=3)
        await source.until_said("p", "no room here")
        condition = objects.condition(source.pod("p"), "PodScheduled") or {}
        assert condition["observedGeneration"] == 3


# --- namespaces side by side


async def test_a_costly_cycle_leaves_as_much_time_to_everything_else(clock, monkeypatch):
    began, cycle = list[float](), ProxyScheduler._cycle

    def costly(scheduler: ProxyScheduler, *args: object) -> float:
        began.append(clock.monotonic())
        cycle(scheduler, *args)  # type: ignore[arg-type]
        return 0.5

    monkeypatch.setattr(ProxyScheduler, "_cycle", costly)
    source = SourceCluster(clock, Target("c2", clock))
    async with source.running():
        for number in range(4):
            source.add(f"p{number}")

        await source.until_bound(*(f"p{number}" for number in range(4)))
        pauses = [after - before for before, after in itertools.pairwise(began)]
        assert pauses == [pytest.approx(0.5)] * 3
