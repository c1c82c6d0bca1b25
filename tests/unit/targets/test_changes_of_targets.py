"""Who changes Targets or their Secrets all the time has them looked at at a bounded rate."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.targets.served_clusters import ServedCluster
from tests.unit.targets.test_changed_secrets import Source
from vnode.api.clock import Clock
from vnode.api.target_key import TargetKey
from vnode.runtime import write_limits
from vnode.runtime.noted_changes import NotedChanges, is_of_users
from vnode.telemetry import metrics

ONE, OTHER = TargetKey("team", "one"), TargetKey("other", "one")


def changes_of(clock: Clock) -> NotedChanges[TargetKey]:
    limits = write_limits.TARGET_CHANGES, write_limits.TARGET_CHANGES_OF_NAMESPACE
    return NotedChanges("a", "b", limits, clock, namespace=lambda key: key.namespace)


def look(changes: NotedChanges[TargetKey], key: TargetKey) -> float:
    changes.note(key)
    return changes.wait(key)


@pytest.mark.looptime
async def test_a_target_that_changes_all_the_time_is_looked_at_at_a_rate(clock: Clock) -> None:
    changes, looks = changes_of(clock), 0
    for _ in range(600):
        looks += not look(changes, ONE)
        await asyncio.sleep(0.1)

    limit = write_limits.TARGET_CHANGES
    assert looks == pytest.approx(limit.burst + 60 * limit.rate, abs=1)


@pytest.mark.looptime
async def test_targets_of_a_namespace_share_a_rate_that_concerns_no_other(clock: Clock) -> None:
    changes, looks = changes_of(clock), 0
    for number in range(600):
        looks += not look(changes, TargetKey("team", f"t-{number % 20}"))
        await asyncio.sleep(0.1)

    limit = write_limits.TARGET_CHANGES_OF_NAMESPACE
    assert looks == pytest.approx(limit.burst + 60 * limit.rate, abs=2)
    assert not look(changes, OTHER)


@pytest.mark.looptime
async def test_hundreds_of_cluster_targets_are_looked_at_at_once(clock: Clock) -> None:
    changes = changes_of(clock)
    assert not any(look(changes, TargetKey("", f"t-{number}")) for number in range(500))


@pytest.mark.looptime
async def test_a_look_without_a_change_waits_for_nothing(clock: Clock) -> None:
    changes = changes_of(clock)
    while not look(changes, ONE):
        pass

    await asyncio.sleep(changes.wait(ONE))
    assert [changes.wait(ONE) for _ in range(3)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, {"spec": {}}, True),
        ({"spec": {}, "status": {}}, {"spec": {}, "status": {"conditions": []}}, False),
        ({"spec": {}, "status": {}}, {"spec": {"self": True}, "status": {}}, True),
        ({"spec": {}, "metadata": {}}, {"spec": {}, "metadata": {"labels": {}}}, True),
    ],
)
def test_what_the_reporter_writes_is_no_change(old, new, expected):
    assert is_of_users(old, new) == expected


async def test_other_credentials_again_and_again_cost_few_connections() -> None:
    delayed = metrics.WRITES_DELAYED.labels("connections")._value
    before, cluster = delayed.get(), ServedCluster("a")
    async with cluster.endpoint() as one:
        source = Source(one.url)
        async with source.connecting():
            await source.added.get()
            for number in range(write_limits.TARGET_CHANGES.burst - 1):
                await source.put(one.url, f"user-{number}")
                await source.added.get()

            await source.put(one.url, "one too many")
            while delayed.get() == before:  # noqa: ASYNC110 - nothing else tells of it
                await asyncio.sleep(0.01)

            assert source.added.empty()
