"""Nobody's moves wait for all of another's, and an administrator's drain waits for none."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.pods.policies import spread
from vnode.api.token_bucket import MinuteLimits
from vnode.placement.moves.move_turns import MoveTurns
from vnode.placement.moves.mover import BURST, PER_MINUTE
from vnode.planning.policy import Policy
from vnode.planning.workload_key import PlannedWorkload, namespace_of, workload_of

OWN = spread()
CLUSTER_WIDE = Policy("clusterplacementpolicy/drain", "", None)


class Movers:
    """Workloads with pods to move, each looked at when it is woken; time is played."""

    def __init__(self) -> None:
        self.left: dict[PlannedWorkload, int] = {}
        self.policies: dict[PlannedWorkload, Policy] = {}
        self.moved: list[str] = []  # namespaces
        self._turns = MoveTurns()
        self._turns.subscribe(self._wake)
        self._bucket: MinuteLimits[None] = MinuteLimits(BURST)
        self._due: dict[PlannedWorkload, float] = {}  # the earliest moment, as of a work queue
        self.now = 0.0

    def add(self, namespace: str, pods: int, *, number: int = 0, policy: Policy = OWN) -> None:
        key = PlannedWorkload(f"deployment/{namespace}/w{number}", "")
        self.left[key], self.policies[key] = pods, policy
        self._wake(key, 0.0)

    def _wake(self, key: PlannedWorkload, seconds: float) -> None:
        self._due[key] = min(self._due.get(key, math.inf), self.now + seconds)

    def run(self, moves: int) -> None:
        """Look at who is woken, until so many pods were moved or nobody is woken any more."""
        while self._due and len(self.moved) < moves:
            key = min(self._due, key=self._due.__getitem__)
            self.now = max(self.now, self._due.pop(key))
            self._look(key)

    def _look(self, key: PlannedWorkload) -> None:
        if self.left[key]:
            wait = self._bucket.wait(None, PER_MINUTE, self.now)
            if self._turns.ask(key, self.policies[key], wait):
                assert self._bucket.take(None, PER_MINUTE, self.now)
                self._turns.pay(key, self.policies[key])
                self.left[key] -= 1
                self.moved.append(namespace_of(key.workload))
                self._wake(key, 0.0)

        self._turns.end_look(key, self._bucket.wait(None, PER_MINUTE, self.now))


def test_a_namespace_moves_every_other_pod_however_many_workloads_another_has() -> None:
    movers = Movers()
    for number in range(120):
        movers.add("crowd", 1000, number=number)

    movers.run(50)
    movers.add("quiet", 10)
    movers.run(72)
    assert Counter(movers.moved[50:])["quiet"] == 10


def test_a_drain_of_the_whole_cluster_goes_before_what_tenants_ask_for() -> None:
    movers = Movers()
    for number in range(120):
        movers.add("crowd", 1000, number=number)

    movers.run(50)
    movers.add("quiet", 10, policy=CLUSTER_WIDE)
    movers.run(61)
    assert Counter(movers.moved[50:])["quiet"] == 10


def test_a_cluster_wide_policy_does_not_stop_the_moves_of_others_for_good() -> None:
    movers = Movers()
    movers.add("crowd", 1000, policy=CLUSTER_WIDE)
    movers.add("quiet", 5)
    movers.run(100)
    assert Counter(movers.moved)["quiet"] == 5


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 8), st.booleans()), max_size=12))
def test_every_pod_is_moved_at_the_whole_rate(asked: list[tuple[str, int, bool]]) -> None:
    movers = Movers()
    for number, (namespace, pods, wide) in enumerate(asked):
        movers.add(namespace, pods, number=number, policy=CLUSTER_WIDE if wide else OWN)

    total = sum(pods for _, pods, _ in asked)
    movers.run(total + 1)
    assert len(movers.moved) == total
    assert movers.now == pytest.approx(max(0, total - BURST) * 60 / PER_MINUTE)


@given(st.text(max_size=20), st.text(max_size=20), st.sampled_from(["v1", "a/v1", "x"]))
def test_the_namespace_of_a_workload_is_that_of_its_pods_whatever_they_say_of_their_owner(
    kind: str, name: str, version: str
) -> None:
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": True}
    pod = {"metadata": {"namespace": "mine", "name": "p", "ownerReferences": [owner]}}
    assert namespace_of(workload_of(pod)) == "mine"
    assert namespace_of(workload_of({"metadata": {"namespace": "mine", "name": "p"}})) == "mine"
