"""LeaderWorkerSets: each group in one target, whose members reach each other by name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests import kit
from tests.frameworks import members
from tests.frameworks.installation import LEADER_WORKER_SET
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

SETS = Kind("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
_LABELS = "leaderworkerset.sigs.k8s.io"
SELECTOR = f"{_LABELS}/name=serve"


@pytest.fixture(autouse=True)
async def _sets(
    source: Client, targets: dict[str, Client], operators: Callable[..., None]
) -> AsyncIterator[None]:
    operators(LEADER_WORKER_SET)
    yield
    await source.request("DELETE", SETS.path("default"))


def leader_worker_set(replicas: int, **more: Any) -> Object:
    """Return a set with groups of a leader and two workers, all of which ask for each other."""
    others = [f"${{LWS_LEADER_ADDRESS%%.*}}-{number}.serve" for number in (1, 2)]
    line = members.script("$LWS_LEADER_ADDRESS", *others)
    template = members.template(members.container("main", line))
    groups = {"size": 3, "workerTemplate": template, **more}
    return {
        "metadata": {"name": "serve"},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": groups},
    }


def of_group(pods: dict[str, Object], index: int) -> dict[str, Object]:
    """Return the members of one group."""
    label = f"{_LABELS}/group-index"
    return {name: pod for name, pod in pods.items() if objects.labels(pod)[label] == str(index)}


async def test_each_group_is_whole_in_one_target_and_its_members_reach_each_other(
    fleet: Fleet, source: Client
) -> None:
    await source.create(SETS, leader_worker_set(2), "default")
    pods = await members.until_running(source, SELECTOR, 6)
    for index in (0, 1):
        group = of_group(pods, index)
        assert members.target_of(group)
        assert set(group) == {f"serve-{index}", f"serve-{index}-1", f"serve-{index}-2"}
        for name in group:
            assert await members.heard(fleet, name) == set(group)

    await kit.until_one(
        source, SETS, "serve", "default", lambda lws: kit.has_condition(lws, "Available")
    )


async def test_a_lost_worker_comes_back_beside_the_others(fleet: Fleet, source: Client) -> None:
    await source.create(SETS, leader_worker_set(1, restartPolicy="None"), "default")
    before = await members.until_running(source, SELECTOR, 3)
    await source.delete(kinds.PODS, "serve-0-1", "default")
    after = await members.until_back(source, SELECTOR, before, "serve-0-1")
    assert members.target_of(after) == members.target_of(before)
    assert await members.heard(fleet, "serve-0-1") == set(before)


async def test_a_group_that_is_recreated_for_a_lost_worker_is_whole_again(
    fleet: Fleet, source: Client
) -> None:
    await source.create(SETS, leader_worker_set(1), "default")
    before = await members.until_running(source, SELECTOR, 3)
    await source.delete(kinds.PODS, "serve-0-1", "default")
    after = await members.until_back(source, SELECTOR, before, *before)
    assert members.target_of(after)
    for name in after:
        assert await members.heard(fleet, name) == set(after)
