"""A pod with so many constraints that a cycle would take long is not scheduled, and says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.scheduler_plugins.test_filters import framework, run
from tests.unit.scheduling.builders import pod, virtual_node
from vnode.api import constraint_size, pod_terms
from vnode.api.objects import Object
from vnode.scheduling.framework import Framework

__all__ = ["framework"]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MOST, MOST_OF_PODS = constraint_size.TERMS, constraint_size.POD_TERMS


def near(count: int) -> list[Object]:
    selector = {"matchLabels": {"a": "b"}}
    return [{"topologyKey": "none", "labelSelector": selector} for _ in range(count)]


def affinity(which: str, when: str, terms: Any) -> Object:
    return {"affinity": {which: {when: terms}}}


def wishes(count: int) -> list[Object]:
    return [{"weight": 1, "podAffinityTerm": term} for term in near(count)]


def nodes(count: int) -> Object:
    expression = {"key": "x", "operator": "DoesNotExist"}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]} for _ in range(count)]}


def spread(count: int) -> Object:
    how = {"maxSkew": 9, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    return {"topologySpreadConstraints": [{"topologyKey": "t", **how} for _ in range(count)]}


def tolerations(count: int) -> Object:
    return {"tolerations": [{"key": "a", "operator": "Exists"}] * count}


BOUNDS: list[tuple[str, str, Callable[[int], Object], int]] = [
    (
        "InterPodAffinity",
        "spec.affinity.podAntiAffinity",
        lambda count: affinity("podAntiAffinity", REQUIRED, near(count)),
        MOST_OF_PODS,
    ),
    (
        "InterPodAffinity",
        "spec.affinity.podAffinity",
        lambda count: affinity("podAffinity", PREFERRED, wishes(count)),
        MOST_OF_PODS,
    ),
    (
        "NodeAffinity",
        "spec.affinity.nodeAffinity",
        lambda count: affinity("nodeAffinity", REQUIRED, nodes(count)),
        MOST,
    ),
    ("PodTopologySpread", "spec.topologySpreadConstraints", spread, MOST),
    ("TaintToleration", "spec.tolerations", tolerations, MOST),
]


@pytest.mark.parametrize(("plugin", "field", "spec", "most"), BOUNDS)
def test_terms_beyond_the_bound_are_named_with_the_bound(
    framework: Framework, plugin: str, field: str, spec: Callable[[int], Object], most: int
) -> None:
    assert run(framework, pod("p", **spec(most)), virtual_node("a")).status.is_success
    result = run(framework, pod("p", **spec(most + 1)), virtual_node("a"))
    assert not result.status.is_success
    why = result.statuses["a"]
    assert (why.plugin, why.message) == (
        plugin,
        f"{field} has {most + 1} terms: use {most} at most",
    )


@pytest.mark.parametrize(
    "spec",
    [
        affinity("podAffinity", REQUIRED, [{**near(1)[0], "namespaces": ["x"] * 1001}]),
        affinity(
            "nodeAffinity",
            PREFERRED,
            [{"weight": 1, "preference": nodes(1)["nodeSelectorTerms"][0]}] * 1001,
        ),
        {"nodeSelector": {f"k{i}": "v" for i in range(1001)}},
    ],
    ids=["namespaces", "preferences", "nodeSelector"],
)
def test_one_term_cannot_hold_what_many_may_not(framework: Framework, spec: Object) -> None:
    result = run(framework, pod("p", **spec), virtual_node("a"))
    assert "over 1000 values: use 1000 at most" in result.statuses["a"].message


def test_terms_that_are_too_many_keep_nobody_away() -> None:
    """Somebody may have bound such a pod by hand."""
    anti = affinity("podAntiAffinity", REQUIRED, near(MOST_OF_PODS + 1))
    assert pod_terms.repelled(pod("p", **anti)) == ()
    anti = affinity("podAntiAffinity", REQUIRED, near(2))
    assert len(pod_terms.repelled(pod("p", **anti))) == 2


def test_a_number_that_is_too_long_for_a_label_is_refused(framework: Framework) -> None:
    expression = {"key": "x", "operator": "Gt", "values": ["9" * 5000]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    result = run(
        framework,
        pod("p", **affinity("nodeAffinity", REQUIRED, terms)),
        virtual_node("a", labels={"x": "1"}),
    )
    assert "needs one whole number" in result.statuses["a"].message
