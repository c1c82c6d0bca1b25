"""Pods that are changed while they wait: no candidate of a former version is reserved or bound."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.source.changed_pods import (
    BACKOFF,
    EDITS,
    Bindings,
    Edit,
    annotate_renaming,
    edit,
    image,
    label,
    numbered,
    pod_of,
    resize,
    shown,
)
from tests.unit.pods.targets import (
    AT_ONCE,
    Target,
    is_silent,
    prefer,
    rejects,
    reserves,
)
from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.scheduling import retry_budget

pytestmark = pytest.mark.looptime


# --- users


@pytest.mark.parametrize("change", EDITS)
async def test_a_candidate_that_waits_for_room_is_made_anew_when_its_pod_is_changed(
    clock: Clock, change: Edit
) -> None:
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        pod_of(source)
        await source.until_said("p", "no room here")
        before = objects.uid(target.candidate("p"))
        edit(source, change)
        await asyncio.sleep(BACKOFF)
        made = target.candidate("p")
        assert objects.uid(made) != before
        assert shown(made) == shown(source.pod("p"))
        assert target.asked("create") == 2
        await asyncio.sleep(100)
        assert target.asked("create") == 2


async def test_a_pod_whose_candidate_was_made_anew_in_vain_has_a_longer_back_off(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_budget, "BURST", 0.0)
    monkeypatch.setattr(retry_budget, "REMADE", 100 * retry_budget.SHARE)
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        pod_of(source)
        await source.until_said("p", "no room here")
        edit(source, numbered(1))
        await asyncio.sleep(BACKOFF)
        assert target.asked("create") == 2
        edit(source, numbered(2))
        await asyncio.sleep(60)
        assert target.asked("create") == 2
        await asyncio.sleep(60)
        assert target.asked("create") == 3


async def test_a_candidate_is_made_anew_once_in_an_attempt(clock: Clock) -> None:
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    async with source.running():
        pod_of(source)
        for number in range(20):
            await asyncio.sleep(0.1)
            edit(source, numbered(number))

        assert target.asked("create") <= 4
        target.answer = reserves
        await source.until_bound("p")
        assert shown(target.candidate("p"))["team"] == "19"


async def test_an_annotation_that_says_which_labels_travel_unchanged_is_obeyed_while_it_waits(
    clock: Clock,
) -> None:
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", labels={"example.com/app": "web"})
        await source.until_said("p", "no room here")
        edit(source, annotate_renaming)
        await asyncio.sleep(BACKOFF)
        assert objects.labels(target.candidate("p"))["example.com/app"] == "web"


async def test_a_status_that_is_written_while_a_pod_waits_changes_nothing(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", "no room here")
        source.change("p", status={"nominatedNodeName": "x"})
        await asyncio.sleep(100)
        assert target.asked() == 1


@pytest.mark.parametrize("answer", [rejects, is_silent, reserves])
@pytest.mark.parametrize("moment", [0.001 * step for step in range(0, 40, 3)])
async def test_whenever_a_pod_is_changed_what_is_bound_is_what_the_target_has(
    clock: Clock, moment: float, answer: Any
) -> None:
    """The change comes before, in or after each request of the way from creation to binding."""
    target = Target("c2", clock, answer)
    source = SourceCluster(clock, target)
    bindings = Bindings(source)
    async with source.running():
        pod_of(source)
        await asyncio.sleep(moment)
        edit(source, image("new"))
        edit(source, label)
        if answer is not reserves:
            await asyncio.sleep(moment)
            target.answer = reserves
            if found := target.find("p"):
                reserves(target, found)

        await source.until_bound("p")
        ((pod, candidate),) = bindings.found
        assert shown(candidate) == shown(pod)


async def test_a_change_between_the_last_look_and_the_binding_has_it_refused(clock: Clock) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target)
    bindings = Bindings(source)
    source.server.fail(None, verb="create", subresource="binding", delay=1.0)
    async with source.running():
        pod_of(source)
        await asyncio.sleep(AT_ONCE)
        assert len(source.bindings) == 1
        edit(source, image("new"))
        await source.until_bound("p")
        ((pod, candidate),) = bindings.found
        assert shown(candidate) == shown(pod)
        assert shown(pod)["image"] == "new"


async def test_a_status_that_comes_before_the_binding_costs_one_more_request_for_it(
    clock: Clock,
) -> None:
    target = Target("c2", clock)
    source = SourceCluster(clock, target)
    source.server.fail(None, verb="create", subresource="binding", delay=1.0)
    async with source.running():
        source.add("p")
        await asyncio.sleep(AT_ONCE)
        source.change("p", status={"nominatedNodeName": "x"})
        await source.until_bound("p")
        assert source.bindings == ["p", "p"]
        assert target.asked() == 1


async def test_a_pod_that_is_changed_keeps_its_turn(clock: Clock) -> None:
    """Its candidate in the best target is made anew before another target is asked."""
    first, second = Target("c2", clock, is_silent), Target("c3", clock)
    prefer(first, second)
    source = SourceCluster(clock, first, second)
    async with source.running():
        pod_of(source)
        await asyncio.sleep(1)
        first.answer = reserves
        edit(source, image("new"))
        await source.until_bound("p")
        assert source.node_of("p") == first.node
        assert clock.monotonic() < 1 + AT_ONCE
        assert second.asked() == 0


async def test_each_target_in_which_a_pod_waits_is_asked_for_what_it_is_now(clock: Clock) -> None:
    pair = Target("c2", clock, rejects), Target("c3", clock, rejects)
    source = SourceCluster(clock, *pair)
    async with source.running():
        pod_of(source)
        await source.until_said("p", "no room here")
        edit(source, resize)
        await asyncio.sleep(BACKOFF)
        for target in pair:
            assert shown(target.candidate("p"))["resources"] == {"requests": {"cpu": "500m"}}


async def test_a_pod_that_asks_for_no_reservation_later_is_not_bound_to_its_old_candidate(
    clock: Clock,
) -> None:
    target = Target("c2", clock, rejects, cpu="8")
    source = SourceCluster(clock, target)
    async with source.running():
        pod_of(source)
        await source.until_said("p", "no room here")

        def ask(pod: Object) -> None:
            image("new")(pod)
            pod["metadata"].setdefault("annotations", {})[keys.NO_RESERVATION] = ""

        edit(source, ask)
        await source.until_bound("p")
        assert target.find("p") is None


async def test_a_target_that_changes_what_it_was_sent_costs_few_requests(clock: Clock) -> None:
    def changes(target: Target, candidate: Object) -> None:
        target.annotate(candidate, **{keys.FORM: "another", keys.IS_RESERVED: "true"})

    target = Target("c2", clock, changes)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", f"annotation {keys.FORM}")
        await asyncio.sleep(60)
        assert source.bindings == []
        assert target.asked("create") < 15


async def test_a_candidate_that_cannot_be_deleted_is_not_bound_either(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        pod_of(source)
        await source.until_said("p", "no room here")
        target.lets_go = False
        edit(source, image("new"))
        await asyncio.sleep(BACKOFF)
        reserves(target, target.candidate("p"))
        await asyncio.sleep(BACKOFF)
        assert source.bindings == []
        target.answer = reserves
        target.remove(target.candidate("p"))
        await source.until_bound("p")
        assert shown(target.candidate("p"))["image"] == "new"


# --- targets


async def test_a_class_that_a_target_gets_later_is_that_of_the_candidate(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    target.set_classes([], ["low"])
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p", spec={"priorityClassName": "high", "priority": 1000})
        await asyncio.sleep(1)
        target.set_classes([], ["low", "high"])
        await asyncio.sleep(BACKOFF)
        assert objects.spec(target.candidate("p"))["priorityClassName"] == "high"


async def test_a_class_that_no_agent_vouches_for_any_more_is_left_to_the_candidate(
    clock: Clock,
) -> None:
    """Admiralty, back in the target, keeps the list of a vnode, and the class was made later."""
    target = Target("c2", clock)
    target.set_classes([], ["low"])
    source = SourceCluster(clock, target)
    async with source.running():
        target.link.set_agent_silent(False)
        source.add("p", spec={"runtimeClassName": "later"})
        await source.until_said("p", 'RuntimeClass "later" not found')
        target.link.set_agent_silent(True)
        await source.until_bound("p")


# --- policies
