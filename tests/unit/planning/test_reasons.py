"""The words for why a pod has its place."""

from __future__ import annotations

import pytest

from vnode.api import keys
from vnode.planning import reasons
from vnode.planning.cluster_choice import ClusterChoice
from vnode.planning.policy import Clusters, Mode, PlacementTarget, Policy
from vnode.planning.seats import Share

WEIGHTED = (PlacementTarget(Clusters(), weight=40),)
CHOICE = ClusterChoice("a", (("b", 130.0),), {"a": 4}, 10, 10.0, None)


def policy(mode: Mode = Mode.SPREAD, targets: tuple[PlacementTarget, ...] = WEIGHTED) -> Policy:
    return Policy("placementpolicy/web", "default", None, mode, targets=targets)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (policy(), "planned here: 4 of 10 by weight 40 (placementpolicy/web)"),
        (policy(targets=()), "planned here: 4 of 10 by capacity (placementpolicy/web)"),
        (policy(Mode.FILL), "planned here: 4 of 10 (placementpolicy/web)"),
    ],
)
def test_a_place_by_plan_says_how_many_are_planned_there_and_by_what(
    by: Policy, expected: str
) -> None:
    assert reasons.planned(by, Share("a", 40), CHOICE, "a") == expected


def test_a_place_by_overflow_says_from_where_and_after_how_long() -> None:
    found = reasons.planned(policy(), Share("b", 20), CHOICE, "berlin")
    assert found == "overflowed from berlin after 2m (placementpolicy/web)"


def test_a_place_that_the_plan_has_not_chosen_has_no_reason() -> None:
    assert reasons.planned(policy(), Share("c", 20), CHOICE, "berlin") == ""


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0s"), (59.6, "1m"), (90, "90s"), (120, "2m"), (150, "2m30s"), (5400, "1h30m")],
)
def test_durations_are_written_as_in_policies(seconds: float, expected: str) -> None:
    assert reasons.duration(seconds) == expected


def test_what_is_written_on_a_pod_is_bounded_and_cleaned() -> None:
    annotations = {keys.PLACED: "\x1b[31mred\n" + "x" * 1000}
    pod = {"metadata": {"annotations": annotations}, "spec": {"nodeName": "n"}}
    assert len(reasons.of(pod)) <= 300
    assert reasons.of(pod).isprintable()
    assert reasons.of({**pod, "spec": {}}) == "", "it is about a pod that is bound"
