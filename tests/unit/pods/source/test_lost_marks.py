"""Chaperons of which somebody in the target takes off, or changes, what we rely on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.pods.bound_pods import RUNNING, SPACE, BoundPodsEnvironment, is_allowed
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object

pytestmark = pytest.mark.looptime

LABELS = (keys.PARENT_UID, keys.PARENT_CLUSTER_NAME)
ANNOTATIONS = (
    keys.PARENT_UID,
    keys.PARENT_CLUSTER_UID,
    keys.PARENT_NAMESPACE,
    keys.PARENT_NAME,
    keys.TARGET,
    keys.IS_ALLOWED,
)
MARKS = [("labels", key) for key in LABELS] + [("annotations", key) for key in ANNOTATIONS[1:]]
changes = pytest.mark.parametrize("value", [None, "other"], ids=["taken off", "changed"])
marks = pytest.mark.parametrize(("field", "key"), MARKS, ids=[f"{f} {k}" for f, k in MARKS])


@pytest.fixture
async def env(clock: Clock) -> BoundPodsEnvironment:
    return BoundPodsEnvironment(clock)


def spoil(env: BoundPodsEnvironment, field: str, key: str, value: str | None) -> None:
    def change(chaperon: Object) -> None:
        entries = chaperon["metadata"][field]
        entries.pop(key)
        if value is not None:
            entries[key] = value

    env.target.change(change)


def add_delegate(env: BoundPodsEnvironment, **metadata: Any) -> None:
    chaperon = env.target.chaperon() or {}
    owner = {"kind": "PodChaperon", "name": objects.name(chaperon), "uid": objects.uid(chaperon)}
    head = {"name": objects.name(chaperon), "namespace": SPACE}
    labels = {keys.PARENT_UID: "web"}
    owners = [{**owner, "controller": True}]
    pod = {"metadata": {**head, "labels": labels, "ownerReferences": owners, **metadata}}
    env.target.server.add(kinds.PODS, {**pod, "status": RUNNING})


def metadata_of(chaperon: Object | None) -> dict[str, Object]:
    """Return the labels and annotations by which a chaperon is known."""
    known = objects.metadata(chaperon or {})
    return {
        "labels": {k: known["labels"].get(k) for k in LABELS},
        "annotations": {k: known["annotations"].get(k) for k in ANNOTATIONS},
    }


@changes
@marks
@pytest.mark.parametrize("restarts", [False, True], ids=["seen", "while the agent is away"])
async def test_what_a_chaperon_is_known_by_is_put_back_and_its_pod_goes_on(
    env: BoundPodsEnvironment, field: str, key: str, value: str | None, restarts: bool
) -> None:
    env.target.add(env.add(), **RUNNING)
    before = metadata_of(env.target.chaperon())
    if restarts:
        spoil(env, field, key, value)

    async with env.running():
        if not restarts:
            spoil(env, field, key, value)

        await asyncio.sleep(60)
        assert not env.is_ending()
        after = metadata_of(env.target.chaperon())
        assert after == before or (key, value) == (keys.IS_ALLOWED, "other")
        env.target.report(podIP="10.0.0.9")
        await asyncio.sleep(5)
        assert env.status()["podIP"] == "10.0.0.9"
        assert env.event_messages("DelegateLost") == []


@changes
@marks
async def test_a_pod_that_is_deleted_ends_whatever_its_chaperon_has_lost(
    env: BoundPodsEnvironment, field: str, key: str, value: str | None
) -> None:
    env.target.add(env.add(), **RUNNING)
    add_delegate(env)
    async with env.running():
        await env.delete()
        spoil(env, field, key, value)
        await asyncio.sleep(300)
        chaperon = env.target.chaperon()
        assert chaperon is None or objects.is_terminating(chaperon)
        assert env.pod() is not None, "its delegate runs"
        env.target.remove()
        env.target.server.remove(kinds.PODS, names.chaperon("web", "web"), SPACE)
        await asyncio.sleep(61)
        assert env.pod() is None


async def test_the_orphan_of_which_the_label_was_taken_off_is_deleted(
    env: BoundPodsEnvironment,
) -> None:
    pod = env.add()
    env.target.add(pod, **RUNNING)
    spoil(env, "labels", keys.PARENT_UID, None)
    env.source.remove(kinds.PODS, "web", SPACE)
    async with env.running(seconds=60):
        assert objects.is_terminating(
            env.target.chaperon() or {"metadata": {"deletionTimestamp": 0}}
        )


async def test_the_end_of_a_chaperon_without_our_finalizer_is_waited_for(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), **RUNNING)
    env.target.change(lambda chaperon: chaperon["metadata"].pop("finalizers"))
    add_delegate(env)
    async with env.running():
        assert is_allowed(env.target.chaperon())
        await env.delete()
        await asyncio.sleep(10)
        assert env.target.chaperon() is None
        assert env.pod() is not None
        env.target.server.remove(kinds.PODS, names.chaperon("web", "web"), SPACE)
        await asyncio.sleep(3)
        assert env.pod() is None


async def test_of_a_delegate_that_nobody_ends_people_are_told_and_it_is_looked_for_less_often(
    env: BoundPodsEnvironment,
) -> None:
    env.target.add(env.add(), **RUNNING)
    add_delegate(env, ownerReferences=[])
    env.target.change(lambda chaperon: chaperon["metadata"].pop("finalizers"))
    async with env.running():
        await env.delete()
        await asyncio.sleep(200)
        before = env.target.server.count("list", kinds.PODS)
        await asyncio.sleep(600)
        assert env.target.server.count("list", kinds.PODS) - before <= 11
        (message,) = set(env.event_messages("DelegateLingers"))
        assert f"kubectl delete pod {names.chaperon('web', 'web')}" in message
        env.target.server.remove(kinds.PODS, names.chaperon("web", "web"), SPACE)
        await asyncio.sleep(61)
        assert env.pod() is None


async def test_a_pod_that_others_bound_finds_its_chaperon_without_labels(
    env: BoundPodsEnvironment,
) -> None:
    pod = env.add(spec={"schedulerName": "default-scheduler"})
    env.target.add(pod)
    for label in LABELS:
        spoil(env, "labels", label, None)

    async with env.running(seconds=10):
        assert metadata_of(env.target.chaperon())["labels"][keys.PARENT_UID] == "web"
        env.target.report(**RUNNING)
        await asyncio.sleep(5)
        assert env.status()["phase"] == "Running"
