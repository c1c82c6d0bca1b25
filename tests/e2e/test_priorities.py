"""A pod's priority goes with it: by a class of its own name, of about its value, or by a map."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, shared
from tests.e2e.test_refusals import create_with_young_class
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["home", "shared"]

OURS: dict[str, Object] = {
    "rank-urgent": {"value": 100},
    "rank-polite": {"value": 100, "preemptionPolicy": "Never"},
}
THEIRS: dict[str, Object] = {"rank-low": {"value": 10}, "rank-high": {"value": 500}}


@pytest.fixture
async def classes(source: Client, c2: Client) -> AsyncIterator[None]:
    """Create the source's priority classes; after the test, delete them and those of c2."""
    for name, fields in OURS.items():
        await source.create(kinds.PRIORITY_CLASSES, {"metadata": {"name": name}, **fields})

    yield
    for cluster, names in ((source, OURS), (c2, THEIRS)):
        for name in names:
            await cluster.discard(kinds.PRIORITY_CLASSES, {"metadata": {"name": name}})


async def until_said(source: Client, namespace: str, name: str, text: str) -> None:
    def has_text(pod: Object) -> bool:
        return text in str((objects.condition(pod, "PodScheduled") or {}).get("message"))

    await kit.until_one(source, kinds.PODS, name, namespace, has_text)


async def priority(source: Client, c2: Client, namespace: str, name: str) -> tuple[str, int]:
    """Return the class and the value of the delegate, once the pod runs."""
    proxy = await kit.until_one(
        source, kinds.PODS, name, namespace, lambda p: kit.phase(p) == "Running"
    )
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (delegate,) = await c2.list(kinds.PODS, namespace, label_selector=selector)
    spec = objects.spec(delegate)
    return spec["priorityClassName"], spec["priority"]


async def test_a_priority_finds_its_class_by_value_and_by_the_map(
    fleet: Fleet, source: Client, c2: Client, shared: str, classes: None
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, shared)

    def urgent(name: str, class_: str = "rank-urgent") -> Object:
        return kit.pod(name, priorityClassName=class_)

    await create_with_young_class(source, urgent("by-value"), shared)
    missing = 'PriorityClass "rank-urgent" not found: create it in the target'
    await until_said(source, shared, "by-value", missing)
    for name, fields in THEIRS.items():
        await c2.create(kinds.PRIORITY_CLASSES, {"metadata": {"name": name}, **fields})

    assert await priority(source, c2, shared, "by-value") == ("rank-low", 10)

    pairs = "rank-urgent=rank-high, rank-polite=rank-high"
    annotations = {"annotations": {keys.PRIORITY_CLASSES: pairs}}
    await source.patch(kinds.TARGETS, "bad", {"metadata": annotations}, shared)
    await create_with_young_class(source, urgent("polite", "rank-polite"), shared)
    await until_said(source, shared, "polite", "preempts in the target, and the pod must not")
    await create_with_young_class(source, urgent("by-map"), shared)
    assert await priority(source, c2, shared, "by-map") == ("rank-high", 500)
