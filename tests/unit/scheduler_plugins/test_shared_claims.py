"""Pods that name the same ResourceClaim go to one target."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduling.builders import cache_of, pod
from tests.unit.scheduling.gpu_targets import make_framework
from vnode.scheduling.cache import Cache
from vnode.scheduling.framework import Framework
from vnode.scheduling.result import CycleResult

SHARED: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}
NONE: dict[str, Any] = {}
OTHER: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "other"}]}
OWN: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]}


@pytest.fixture
def framework() -> Framework:
    return make_framework()


@pytest.fixture
def cache() -> Cache:
    return cache_of("a", "b")


def bound(name: str, node: str, **spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod(name, **SHARED, **spec)
    found["spec"]["nodeName"] = node
    return found


def schedule(framework: Framework, cache: Cache, wanted: dict[str, Any]) -> CycleResult:
    return framework.schedule(wanted, cache.snapshot())


def nodes(framework: Framework, cache: Cache, wanted: dict[str, Any]) -> set[str]:
    return {scored.name for scored in schedule(framework, cache, wanted).feasible}


def test_the_first_bound_pod_settles_where_the_others_go(
    framework: Framework, cache: Cache
) -> None:
    assert nodes(framework, cache, pod("p", **SHARED)) == {"a", "b"}
    cache.set_pod(bound("first", "a"))
    result = schedule(framework, cache, pod("p", **SHARED))
    assert {scored.name for scored in result.feasible} == {"a"}
    assert result.statuses["b"].message == 'ResourceClaim "shared" is used in target a'


def test_other_claims_and_templates_are_free(framework: Framework, cache: Cache) -> None:
    cache.set_pod(bound("first", "a"))
    for spec in (NONE, OWN, OTHER):
        assert nodes(framework, cache, pod("p", **spec)) == {"a", "b"}

    assert nodes(framework, cache, pod("p", namespace="team", **SHARED)) == {"a", "b"}


def test_a_claim_is_free_again_once_its_last_pod_has_gone_or_finished(
    framework: Framework, cache: Cache
) -> None:
    cache.set_pod(bound("first", "a"))
    cache.set_pod(bound("second", "a"))
    cache.remove_pod("first")
    assert nodes(framework, cache, pod("p", **SHARED)) == {"a"}
    cache.set_pod({**bound("second", "a"), "status": {"phase": "Succeeded"}})
    assert nodes(framework, cache, pod("p", **SHARED)) == {"a", "b"}


def test_of_two_pods_with_a_place_in_different_targets_the_first_one_stays(
    framework: Framework, cache: Cache
) -> None:
    first, second = pod("first", **SHARED), pod("second", **SHARED)
    states = [schedule(framework, cache, each).state for each in (first, second)]
    cycle = framework.binding_cycle
    assert cycle.reserve(states[0], first, "a").is_success
    assert cycle.reserve(states[1], second, "b").is_rejected
    assert framework.check(second, cache.snapshot(), "b").is_rejected
    assert framework.check(second, cache.snapshot(), "a").is_success
    cycle.unreserve(states[0], first, "a")
    assert cycle.reserve(states[1], second, "b").is_success


def test_a_pod_that_was_bound_after_its_place_was_reserved_counts_once(
    framework: Framework, cache: Cache
) -> None:
    first = pod("first", **SHARED)
    state = schedule(framework, cache, first).state
    assert framework.binding_cycle.reserve(state, first, "a").is_success
    cache.set_pod(bound("first", "a"))
    cache.remove_pod("first")
    assert nodes(framework, cache, pod("p", **SHARED)) == {"a", "b"}
