"""Pods of a higher priority for which no target has room: where others end for them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e.test_full_targets import (
    UNIT,
    Offer,
    is_full,
    offer,  # noqa: F401 - a fixture
    unit_pod,
)
from tests.e2e.test_refusals import create_with_young_class
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

CLASSES: dict[str, Object] = {
    "vital": {"value": 1000},
    "vital-polite": {"value": 1000, "preemptionPolicy": "Never"},
    "middle": {"value": 50},
    "cheap": {"value": 10},
}
OTHERS, ROOM, NEEDED = "others", 4, 2  # units
C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))


@pytest.fixture
async def classes(source: Client, c2: Client, c3: Client) -> AsyncIterator[None]:
    """Create the same priority classes in all clusters; delete them when the test ends."""
    for cluster in (source, c2, c3):
        for name, fields in CLASSES.items():
            body = {"metadata": {"name": name}, **fields}
            await cluster.apply(kinds.PRIORITY_CLASSES, body, manager="test")

    yield
    for cluster in (source, c2, c3):
        for name in CLASSES:
            await cluster.delete(kinds.PRIORITY_CLASSES, name)


@pytest.fixture
async def full(
    source: Client,
    c2: Client,
    c3: Client,
    offer: Offer,  # noqa: F811
    classes: None,
) -> AsyncIterator[None]:
    """Fill c2 with two `cheap` pods, which the source protects, and c3 with two `middle` pods."""
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "c2"}}}
    budget = {"metadata": {"name": "c2"}, "spec": spec}
    await source.create(kinds.POD_DISRUPTION_BUDGETS, budget, "default")
    for target, name, class_ in ((c2, "c2", "cheap"), (c3, "c3", "middle")):
        await offer(target, name, 2)
        for number in range(2):
            await create(source, f"{name}-{number}", class_, name, **{keys.TARGET_NAME: name})

        for number in range(2):
            await until_running(source, f"{name}-{number}")

        await kit.until_one(target, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", is_full)

    def is_counted(budget: Object) -> bool:
        return bool(objects.status(budget).get("currentHealthy") == 2)

    await kit.until_one(source, kinds.POD_DISRUPTION_BUDGETS, "c2", "default", is_counted)
    yield
    await source.discard(
        kinds.POD_DISRUPTION_BUDGETS, {"metadata": {"name": "c2", "namespace": "default"}}
    )


async def create(source: Client, name: str, class_: str, app: str, **selector: str) -> None:
    pod = unit_pod(name, app, {"priorityClassName": class_, "nodeSelector": selector})
    await create_with_young_class(source, pod)


async def until_running(source: Client, name: str) -> Object:
    return await kit.until_running(source, name)


async def left(source: Client) -> list[str]:
    pods = await source.list(kinds.PODS, "default")
    return sorted(objects.name(p) for p in pods if not objects.is_terminating(p))


async def test_the_least_harm_is_done_in_one_target_and_none_to_equals(
    source: Client, full: None
) -> None:
    await create(source, "vital", "vital", "vital")
    vital = await until_running(source, "vital")
    assert objects.node_name(vital) == C3  # in c2 lower pods run, which a budget protects
    what = "involvedObject.name=vital,reason=Preempting"
    await kit.until_event(source, "default", what, "Preempting 1 pod of priority 50 or lower")
    remaining = await left(source)
    assert len(remaining) == 4
    assert {"c2-0", "c2-1", "vital"} < set(remaining)
    (victim,) = {"c3-0", "c3-1"} - set(remaining)
    what = f"involvedObject.name={victim},reason=Preempted"
    await kit.until_event(source, "default", what, "in target default/c3: ")

    # Without protection, the lower pods are the lesser harm.
    await source.delete(kinds.POD_DISRUPTION_BUDGETS, "c2", "default")
    await create(source, "second", "vital", "vital")
    assert objects.node_name(await until_running(source, "second")) == C2
    assert len(set(await left(source)) & {"c2-0", "c2-1"}) == 1

    # One that does not preempt, and one that only could preempt its equals.
    await create(source, "polite", "vital-polite", "vital")
    await create(source, "equal", "cheap", "vital")
    for name in ("polite", "equal"):
        await kit.until_event(
            source, "default", f"involvedObject.name={name},reason=FailedScheduling", "nsufficient"
        )

    before = await left(source)
    await create(source, "third", "vital", "vital", **{keys.TARGET_NAME: "c3"})
    third = await until_running(source, "third")
    assert objects.node_name(third) == C3
    after = await left(source)
    assert sorted(set(before) - set(after)) == [n for n in before if n.startswith("c3-")]
    assert {"polite", "equal"} < set(after)


@pytest.fixture
async def full_of_others(
    source: Client,
    c2: Client,
    c3: Client,
    offer: Offer,  # noqa: F811
    classes: None,
) -> AsyncIterator[None]:
    """Fill c2 and c3 with pods of an ordinary Deployment, which come again as they end."""
    template = unit_pod("", OTHERS, {"priorityClassName": "cheap"})
    template["metadata"]["annotations"] = {}
    for target, name in ((c2, "c2"), (c3, "c3")):
        await offer(target, name, ROOM)
        await target.create(kinds.DEPLOYMENTS, kit.deployment(OTHERS, ROOM, template), "default")
        await kit.until_pods(target, OTHERS, lambda all_: kit.running(all_, ROOM))
        await kit.until_one(target, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", is_full)

    yield
    for target in (c2, c3):
        await target.delete(kinds.DEPLOYMENTS, OTHERS, "default")
        await kit.until_gone(target, kinds.PODS, "default", label_selector=f"app={OTHERS}")


async def test_pods_of_the_target_do_not_take_the_room_that_their_like_have_left(
    source: Client, c2: Client, c3: Client, full_of_others: None
) -> None:
    """Two schedulers place pods there, and what was evicted is made again at once."""
    pod = unit_pod("vital", "vital", {"priorityClassName": "vital"})
    resources = objects.spec(pod)["containers"][0]["resources"]
    for amounts in resources.values():
        amounts[UNIT] = str(NEEDED)

    await create_with_young_class(source, pod)
    await until_running(source, "vital")
    victims = [
        event
        for target in (c2, c3)
        for event in await target.list(
            kinds.EVENTS, "default", field_selector="reason=Preempted,type=Normal"
        )
        if event["involvedObject"]["name"].startswith(f"{OTHERS}-")
    ]
    assert NEEDED <= len(victims) <= 2 * NEEDED

    def none_is_nominated(pods: dict[str, Object]) -> bool:
        return not any(name.startswith("vnode-nominated-") for name in pods)

    for target in (c2, c3):
        await kit.until(target, kinds.PODS, none_is_nominated, namespace="default")
