"""What is remembered of pods that policies keep from targets: it costs no other pod anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.scheduling import costs
from tests.unit.scheduling.builders import pod
from vnode.overrides.failures import Failures

NODES = ("admiralty-a", "admiralty-b")
BYSTANDER = pod("web", namespace="team-c", node="admiralty-a")


def failing(count: int) -> Failures:
    """Return failures of a tenant's policy, for so many pods on each node."""
    found = Failures()
    for number in range(count):
        for node in NODES:
            found.add("team-a/mirror", pod(f"p{number}"), node, f"p{number} on {node}")

    return found


def cost(count: int, act: Callable[[Failures], object]) -> int:
    found = failing(count)
    return costs.bytecodes(lambda: act(found))


@pytest.mark.parametrize(
    "act",
    [
        lambda found: found.on_pod(BYSTANDER, BYSTANDER),
        lambda found: found.clear(BYSTANDER, NODES[0]),
    ],
)
def test_a_pod_of_another_costs_the_same_however_many_have_failed(
    act: Callable[[Failures], object],
) -> None:
    assert cost(1000, act) == cost(1, act)


def test_nothing_is_left_of_pods_and_policies_that_have_gone() -> None:
    found = failing(20)
    for number in range(10):
        found.on_pod(pod(f"p{number}"), None)

    assert found.first("team-a/mirror") == "p10 on admiralty-a"
    found.forget("team-a/mirror")
    assert not found.first("team-a/mirror")
    assert not costs.entries(found)


def test_of_a_pod_that_is_bound_the_failure_there_stays() -> None:
    found = failing(1)
    found.on_pod(pod("p0"), pod("p0", node="admiralty-b"))
    assert found.first("team-a/mirror") == "p0 on admiralty-b"
    found.clear(pod("p0"), "admiralty-b")
    assert not costs.entries(found)
