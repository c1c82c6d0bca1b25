"""Pods that are changed while they wait: no candidate of a former version is reserved or bound."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.apiserver import links
from tests.apiserver.store import Change
from tests.unit.overrides.making import policy
from tests.unit.pods.clusters import SourceCluster
from tests.unit.pods.source.test_overridden_pods import Lazy, overrides_of
from tests.unit.pods.targets import (
    AT_ONCE,
    LATENCY,
    Target,
    is_silent,
    prefer,
    rejects,
    reserves,
)
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Unreachable
from vnode.api.kinds import Kind
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

Edit = Callable[[Object], None]
SLOW = 0.02  # seconds until a binding is carried out
BACKOFF = 11.0
"""Seconds within which a pod that was changed is tried again."""


def image(name: str) -> Edit:
    def edit(pod: Object) -> None:
        pod["spec"]["containers"][0]["image"] = name

    return edit


def label(pod: Object) -> None:
    pod["metadata"].setdefault("labels", {})["team"] = "blue"


def annotate(pod: Object) -> None:
    pod["metadata"].setdefault("annotations", {})["note"] = "new"


def annotate_renaming(pod: Object) -> None:
    pod["metadata"].setdefault("annotations", {})[keys.NO_PREFIX_LABEL_REGEXP] = "^example.com/app="


def resize(pod: Object) -> None:
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}


def limit(pod: Object) -> None:
    pod["spec"]["activeDeadlineSeconds"] = 60


def tolerate(pod: Object) -> None:
    pod["spec"]["tolerations"] = [{"key": "maintenance", "operator": "Exists"}]


EDITS = (image("new"), label, annotate, resize, limit, tolerate)


class Bindings:
    """Notes what each pod was when it was bound, and what its target had for it then."""

    def __init__(self, source: SourceCluster) -> None:
        self._source = source
        self.found: list[tuple[Object, Object]] = []
        source.server.store.changed.add(self._on_change)

    def _on_change(self, kind: Kind, change: Change) -> None:
        new, old = change.new, change.old
        if kind is not kinds.PODS or not new or not objects.node_name(new):
            return

        if old and not objects.node_name(old):
            name, node = objects.name(new), objects.node_name(new)
            (target,) = (each for each in self._source.targets if each.node == node)
            self.found.append((copy.deepcopy(new), copy.deepcopy(target.candidate(name))))


def edit(source: SourceCluster, change: Edit, name: str = "p") -> None:
    source.server.change(kinds.PODS, name, "default", change)


def shown(obj: Object) -> Object:
    """Return what a proxy and its chaperon have in common."""
    (container,) = objects.spec(obj)["containers"]
    return {
        "image": container.get("image"),
        "resources": container.get("resources"),
        "deadline": objects.spec(obj).get("activeDeadlineSeconds"),
        "tolerations": objects.spec(obj).get("tolerations"),
        "team": objects.labels(obj).get("team") or objects.labels(obj).get(keys.PREFIX + "team"),
        "note": objects.annotations(obj).get("note"),
    }


def pod_of(source: SourceCluster, **fields: Any) -> Object:
    containers = [{"name": "main", "image": "old", "resources": {"requests": {"cpu": "1"}}}]
    return source.add("p", spec={"containers": containers}, **fields)


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


@asynccontextmanager
async def overriding(clock: Clock, *targets: Target) -> AsyncIterator[tuple[SourceCluster, Lazy]]:
    lazy = Lazy()
    source = SourceCluster(clock, *targets, overrides=lazy)
    lazy.real = overrides_of(source.server)
    source.follow(lazy.real)
    async with links.following(*lazy.real.informers), source.running():
        yield source, lazy


def mirror(registry: str = "mirror.example") -> Object:
    return policy({"image": [{"registry": registry}]}, namespace="default")


async def test_a_policy_that_comes_changes_and_goes_is_that_of_a_pod_that_waits(
    clock: Clock,
) -> None:
    target = Target("c2", clock, rejects)
    async with overriding(clock, target) as (source, _):
        pod_of(source)
        await source.until_said("p", "no room here")
        rule = mirror()
        wanted = ("mirror.example/old", "other.example/old", "old")
        source.server.add(kinds.OVERRIDE_POLICIES, rule)
        await asyncio.sleep(BACKOFF)
        assert shown(target.candidate("p"))["image"] == wanted[0]

        def change(obj: Object) -> None:
            obj["spec"] = mirror("other.example")["spec"]

        source.server.change(kinds.OVERRIDE_POLICIES, "mirror", "default", change)
        await asyncio.sleep(BACKOFF)
        assert shown(target.candidate("p"))["image"] == wanted[1]
        source.server.remove(kinds.OVERRIDE_POLICIES, "mirror", "default")
        await asyncio.sleep(BACKOFF)
        assert shown(target.candidate("p"))["image"] == wanted[2]
        assert target.asked("create") == 4


@pytest.mark.parametrize("moment", [0.001 * step for step in range(0, 40, 3)])
async def test_whenever_a_policy_comes_no_pod_runs_without_it_that_was_bound_later(
    clock: Clock, moment: float
) -> None:
    target = Target("c2", clock)
    async with overriding(clock, target) as (source, lazy):
        bindings, known = Bindings(source), []
        lazy.real.subscribe(lambda _key: known.append(clock.monotonic()))
        source.server.fail(None, verb="create", subresource="binding", delay=SLOW)
        pod_of(source)
        await asyncio.sleep(moment)
        source.server.add(kinds.OVERRIDE_POLICIES, mirror())
        await source.until_bound("p")
        ((_, candidate),) = bindings.found
        asked = source.bound["p"] - SLOW - 2 * LATENCY
        if known and known[0] < asked:  # not of the moment before
            assert shown(candidate)["image"] == "mirror.example/old"


async def test_a_policy_that_cannot_be_applied_takes_the_candidate_away(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    async with overriding(clock, target) as (source, _):
        pod_of(source)
        await source.until_said("p", "no room here")
        source.server.add(kinds.OVERRIDE_POLICIES, policy({"image": "x"}, namespace="default"))
        await source.until_said("p", "overridepolicy/default/mirror is not accepted")
        assert target.find("p") is None


async def test_while_policies_are_not_known_a_candidate_stays_and_does_not_win(
    clock: Clock,
) -> None:
    target = Target("c2", clock, rejects)
    async with overriding(clock, target) as (source, lazy):
        pod_of(source)
        await source.until_said("p", "no room here")
        before, real = objects.uid(target.candidate("p")), lazy.real

        class Unknown:
            def choose(self, _pod: Object, _link: Any) -> Any:
                raise Unreachable("not known yet")

        lazy.real = Unknown()
        reserves(target, target.candidate("p"))
        await asyncio.sleep(BACKOFF)
        assert source.bindings == []
        lazy.real = real
        await source.until_bound("p")
        assert objects.uid(target.candidate("p")) == before
