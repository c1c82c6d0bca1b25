"""What excuses that pods are beside their plan, and what does not."""

from __future__ import annotations

import pytest

from tests.simulation.placement_history import PlacementHistory
from tests.unit.simulation.test_placement_groups import group, pod, policy
from vnode.api.objects import Object
from vnode.planning.seats import Share

HEARD = 20.0
PODS = [pod(number, "ab"[number == 4] if number < 5 else "") for number in range(6)]


def ended(pod: Object) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def node(name: str, ready: str) -> Object:
    return {
        "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def history_of(*pods: Object, moment: float = 0.0) -> PlacementHistory:
    history = PlacementHistory(HEARD)
    for each in pods:
        history.on_pod(None, each, moment)

    return history


def surplus(history: PlacementHistory, *pods: Object) -> set[str]:
    """Return the nodes that have too many of pods that weights 2 and 1 divide."""
    there = group(policy(Share("a", 2), Share("b", 1)), *pods)
    part = there.part(pods, history.vacated(pods))
    return {each for each in part.bound if part.has_too_many(each)}


def test_pods_stay_where_they_were_planned_when_one_that_waits_is_deleted() -> None:
    *bound, waits = PODS
    history = history_of(*PODS)
    assert surplus(history, *PODS) == set()
    assert surplus(history, *bound) == {"a"}

    history.on_pod(waits, ended(waits), 1.0)
    history.on_pod(ended(waits), None, 2.0)
    assert history.vacated(bound) == 1
    assert surplus(history, *bound) == set()


def test_pods_that_were_never_planned_where_they_are_stay_beside_the_plan() -> None:
    *bound, waits = PODS
    wrong = [*bound[:4], pod(4, "a")]
    history = history_of(*wrong, waits)
    history.on_pod(waits, None, 1.0)
    assert surplus(history, *wrong) == {"a"}


def test_a_pod_that_ran_or_was_replaced_excuses_nothing() -> None:
    *bound, waits = PODS
    ran = pod(9, "b")
    history = history_of(*bound, ran)
    history.on_pod(ran, ended(ran), 1.0)
    assert history.vacated(bound) == 0

    history = history_of(*PODS)
    history.on_pod(waits, None, 1.0)
    history.on_pod(None, pod(7, "b"), 2.0)
    assert history.vacated([*bound, pod(7, "b")]) == 0


def test_a_pod_of_another_revision_that_waited_excuses_nothing() -> None:
    bound, other = PODS[:5], pod(8, "", revision=1)
    history = history_of(*bound, other)
    history.on_pod(other, None, 1.0)
    assert history.vacated(bound) == 0


@pytest.mark.parametrize(
    ("moment", "nodes", "is_excused"),
    [
        (9.0, {"a", "b"}, True),
        (9.0, {"a"}, False),
        (10.0 + HEARD - 1, {"b"}, True),
        (10.0 + HEARD, {"b"}, False),
    ],
)
def test_pods_are_planned_without_a_cluster_that_is_not_ready_yet(
    moment: float, nodes: set[str], is_excused: bool
) -> None:
    history = history_of(PODS[0], moment=moment)
    assert not history.began_without(PODS, nodes)

    history.on_node(node("a", "True"), 1.0)
    history.on_node(node("b", "False"), 5.0)
    history.on_node(node("b", "True"), 10.0)
    history.on_node(node("b", "True"), 100.0)
    assert history.began_without(PODS, nodes) == is_excused
    assert not history.began_without(PODS[5:], nodes)


def test_a_cluster_that_is_away_excuses_pods_that_are_bound_meanwhile() -> None:
    history = history_of(PODS[0])
    history.on_node(node("b", "False"), 5.0)
    assert history.began_without(PODS, {"a", "b"})
    assert not history.began_without(PODS, {"a"})
