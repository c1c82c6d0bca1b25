"""Of the policies of a namespace only so many are in force, the oldest ones."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from tests.unit.placement.environment import SETTLED, PlacementEnvironment
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.placement.policies.quota import CLUSTER_WIDE, IN_NAMESPACE, PolicyQuota

CREATED: Final = "2026-01-01T{:02}:{:02}:{:02}Z"


def _policy(name: str, second: int, namespace: str = "") -> Object:
    created = CREATED.format(second // 3600, second // 60 % 60, second % 60)
    metadata = {"name": name, "creationTimestamp": created, "generation": 1}
    return {
        "metadata": metadata | ({"namespace": namespace} if namespace else {}),
        "spec": {"selector": {"matchLabels": {"app": name}}},
    }


def _pod(app: str) -> Object:
    return {"metadata": {"name": "p", "namespace": "default", "labels": {"app": app}}}


@pytest.mark.looptime
async def test_those_beyond_the_limit_are_refused_until_older_ones_are_deleted(
    clock: Clock,
) -> None:
    env = PlacementEnvironment(clock, "a")
    # The first by name are the youngest.
    names = [f"p{1000 - number}" for number in range(IN_NAMESPACE + 2)]
    for second, name in enumerate(names):
        env.server.add(kinds.PLACEMENT_POLICIES, _policy(name, second, "default"))

    *old, last = names[: IN_NAMESPACE + 1]
    for _ in range(2):  # another agent chooses the same ones
        async with env.running():
            assert {objects.split_key(key)[1] for key in env.policies.in_force()} == set(old)
            assert env.policies.of(_pod(last)) is None
            status, reason, message = env.accepted(last)
            assert (status, reason) == ("False", "TooManyPolicies")
            assert "the oldest 200: delete those that are not needed" in message

    async with env.running():
        env.server.remove(kinds.PLACEMENT_POLICIES, old[7], "default")
        await asyncio.sleep(SETTLED)
        assert env.policies.of(_pod(last))
        assert env.accepted(last)[0] == "True"
        assert env.accepted(names[-1])[1] == "TooManyPolicies"
        env.server.add(kinds.PLACEMENT_POLICIES, _policy("older", 0, "default"))
        await asyncio.sleep(SETTLED)
        assert env.policies.of(_pod("older"))
        assert env.policies.of(_pod(last)) is None
        assert env.accepted(last)[1] == "TooManyPolicies"


def test_each_namespace_has_a_limit_of_its_own_and_so_have_cluster_wide_policies() -> None:
    quota = PolicyQuota()
    for number in range(CLUSTER_WIDE + 1):
        assert quota.observe(None, _policy(f"p{number:04}", number)) is None

    for namespace in ("one", "two"):
        for number in range(IN_NAMESPACE):
            quota.observe(None, _policy(f"p{number}", number, namespace))

        assert not quota.problem(f"{namespace}/p{IN_NAMESPACE - 1}")

    assert "more ClusterPlacementPolicies" in quota.problem(f"p{CLUSTER_WIDE:04}")
    assert not quota.problem("p0000")
    assert quota.observe(_policy("p0000", 0), None) == f"p{CLUSTER_WIDE:04}"
    assert not quota.problem(f"p{CLUSTER_WIDE:04}")


def test_of_policies_of_one_moment_the_first_by_name_are_in_force() -> None:
    quota = PolicyQuota()
    for number in range(IN_NAMESPACE):
        quota.observe(None, _policy(f"p{number:03}", 5, "one"))

    assert quota.observe(None, _policy("a", 5, "one")) == f"one/p{IN_NAMESPACE - 1:03}"
    assert "namespace one has more" in quota.problem(f"one/p{IN_NAMESPACE - 1:03}")
