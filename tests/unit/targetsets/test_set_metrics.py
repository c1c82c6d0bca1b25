"""Metrics of sets: their profiles by state, and held removals; none of sets that are gone."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.targetsets.sets_environment import TargetSetsEnvironment
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime

NONE = {"ready": 0.0, "unready": 0.0, "refused": 0.0, "gone": 0.0}


def profiles(name: str = "all") -> dict[str, float]:
    [family] = metrics.TARGET_SET_PROFILES.collect()
    return {s.labels["state"]: s.value for s in family.samples if s.labels["set"] == name}


def held(name: str = "all") -> float | None:
    return metrics.REGISTRY.get_sample_value("vnode_target_set_removal_held", {"set": name})


async def test_profiles_are_shown_by_state_and_held_removals(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, *"abcd")
    env.server.add(kinds.CLUSTER_TARGETS, {"metadata": {"name": "d"}, "spec": {"self": True}})
    env.add_set()
    async with env.leading():
        await asyncio.sleep(2)
        env.make_ready("a")
        await asyncio.sleep(2)
        assert profiles() == {**NONE, "ready": 1, "unready": 2, "refused": 1}
        assert held() == 0
        env.remove_profile(*"abcd")
        await asyncio.sleep(10)
        assert profiles() == {**NONE, "gone": 3}
        assert held() == 1

    assert profiles() == {}, "another replica leads"
    assert held() is None


async def test_a_set_that_is_gone_or_cannot_be_kept_has_no_series(clock: Clock) -> None:
    env = TargetSetsEnvironment(clock, "a")
    env.add_set()
    env.add_profile("b", "team")
    env.add_set("mine", namespace="team")
    async with env.leading():
        await asyncio.sleep(2)
        assert profiles() == {**NONE, "unready": 2}
        assert profiles("team/mine") == {**NONE, "unready": 1}
        env.server.remove(kinds.TARGET_SETS, "mine", "team")
        env.change_set(profiles={"names": [""], "namespace": "elsewhere"})
        await asyncio.sleep(2)
        assert profiles() == profiles("team/mine") == {}
        assert held() is held("team/mine") is None
