"""A gang of very many kinds of pods holds nobody up: it is told, and not packed."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from tests.unit.gangs.pods import member, table
from tests.unit.scheduling import costs
from tests.unit.scheduling.builders import ManualClock, cache_of, virtual_node
from tests.unit.scheduling.gpu_targets import make_framework
from vnode.api import objects
from vnode.gangs.gang import Gang
from vnode.gangs.room import GangRoom
from vnode.gangs.table import Gangs
from vnode.pods.source import gang_choice
from vnode.pods.source.gang_room import MOST_KINDS
from vnode.pods.source.gang_rounds import GangRounds
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.result import CycleResult
from vnode.scheduling.snapshot import VirtualNodeInfo


class Rounds:
    """A gang of so many pods and kinds of pods, and what places it on nodes of one CPU."""

    def __init__(self, pods: int, kinds: int, **spec: Any) -> None:
        specs = [{**asking(number), **spec} for number in range(kinds)]
        self.gangs: Gangs = table(
            *(member(f"p{number}", pods, spec=specs[number % kinds]) for number in range(pods))
        )
        self.cache, self.clock = cache_of("a", "b"), ManualClock()
        for node in "ab":
            self.cache.update_free(node, {"cpu": 1000, "pods": 5}, {"cpu": 1000, "pods": 5})

        unused: Any = None
        queue: Any = self
        self.rounds = GangRounds(
            *(self.gangs, make_framework(gangs=self.gangs), self.cache, unused, queue, unused),
            *(unused, objects.spec, lambda _pod, _node: False, self.clock, lambda: 0.0),
        )

    @property
    def gang(self) -> Gang:
        [gang] = self.gangs.values()
        return gang

    def soon(self, _uid: str) -> None:
        """Take the place of the queue's."""

    def cycle(self, number: int = 0) -> CycleResult:
        """Run the cycle of a pod after something has changed."""
        self.cache.update_free("a", {"cpu": 1000, "pods": 5}, {"cpu": 1000, "pods": 5})
        pod = self.gang.members[f"p{number}"].pod
        return self.rounds.cycle(
            self.gang, QueuedPod(pod, f"p{number}", 0, 0.0), self.cache.snapshot()
        )


def asking(number: int) -> Any:
    requests = {"cpu": f"{number + 1}m"}
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


def test_a_gang_of_too_many_kinds_says_so_and_is_not_looked_at() -> None:
    many = Rounds(1000, MOST_KINDS + 1)
    found = many.cycle()
    assert not found.feasible
    expected = (
        f"the pods of gang g ask for over {MOST_KINDS} different combinations of resources and "
        f"kinds of nodes: use {MOST_KINDS} at most"
    )
    assert {status.message for status in found.statuses.values()} == {expected}
    alike = Rounds(1000, 1)
    alike.cycle()
    assert costs.bytecodes(many.cycle) < costs.bytecodes(alike.cycle)


@pytest.mark.parametrize("kinds", [1, MOST_KINDS])
def test_a_gang_of_as_many_kinds_as_may_be_is_looked_at(kinds: int) -> None:
    found = Rounds(64, kinds).cycle()
    assert all("have a place in" in status.message for status in found.statuses.values())


def test_a_gang_whose_pods_are_changed_is_looked_at_again() -> None:
    rounds = Rounds(MOST_KINDS + 1, MOST_KINDS + 1)
    assert "different combinations" in rounds.cycle().statuses["a"].message
    before = rounds.gang.members["p0"].pod
    rounds.gangs.on_pod(before, {**before, "spec": asking(1)})
    assert "have a place in" in rounds.cycle().statuses["a"].message


def test_of_many_targets_a_few_are_looked_at_in_a_cycle_and_all_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds = Rounds(MOST_KINDS, MOST_KINDS)
    names = [f"t{number}" for number in range(7)]
    for name in names:
        rounds.cache.update_node(virtual_node(name))
        rounds.cache.update_free(name, {"cpu": 10, "pods": 5}, {"cpu": 1000, "pods": 5})

    looked, real = list[str](), rounds.rounds._rooms.of

    def of(gang: Gang, minimum: int, node: VirtualNodeInfo) -> GangRoom:
        looked.append(node.name)
        return real(gang, minimum, node)

    monkeypatch.setattr(rounds.rounds._rooms, "of", of)
    rounds.cycle()
    assert sorted(looked) == ["a", "b", *names]
    looked.clear()
    monkeypatch.setattr(gang_choice, "MOST_LOOKED_AT", 3 * 8 * MOST_KINDS)
    for _ in range(3):
        found = rounds.cycle()
        assert found.state.retry_at is not None

    assert sorted(looked) == ["a", "b", *names]


TERMS = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(330)]}
    ]
}
LONG = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS}}


def test_what_thousands_of_pods_ask_for_is_read_in_several_cycles() -> None:
    """A thousand of such pods took four seconds in one cycle."""
    rounds = Rounds(300, 1, affinity=LONG)
    cycles, longest, found = 0, 0.0, rounds.cycle()
    while "looked at first" in found.statuses["a"].message:
        begun = time.thread_time()
        found = rounds.cycle(cycles % 300)
        longest, cycles = max(longest, time.thread_time() - begun), cycles + 1

    assert cycles > 5
    assert longest < 0.1
    assert "have a place in" in found.statuses["a"].message
    assert len({id(each.shape) for each in rounds.gang.members.values()}) == 1


def test_a_gang_looks_at_no_gangs_that_are_not_tried_where_it_may_go() -> None:
    def cost(others: int) -> int:
        rounds = Rounds(2, 1)
        for number in range(others):
            rounds.gangs.on_pod(None, member(f"other-{number}", 1, gang=f"g{number}"))

        return costs.bytecodes(
            lambda: rounds.rounds._chooser._is_tried_by_another(rounds.gangs.values()[0], "a")
        ) - costs.bytecodes(rounds.gangs.values)

    assert cost(500) == cost(0)


def test_long_anti_affinity_is_read_before_all_are_promised_their_room() -> None:
    """Five hundred pods of a gang took 1.6 seconds in one step."""
    keys = [f"k{n}".ljust(63, "x") for n in range(325)]
    absent = [{"key": key, "operator": "DoesNotExist"} for key in keys]
    far = {"topologyKey": "zone", "labelSelector": {"matchExpressions": absent}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [far]}}

    def cost(*, is_read: bool) -> int:
        rounds = Rounds(1, 1, affinity=affinity)
        while is_read and not rounds.rounds._rooms.read(rounds.gang):
            pass

        pod = rounds.gang.members["p0"].pod
        found = costs.bytecodes(partial(rounds.cache.assume, pod, "b", 0.0))
        rounds.cache.remove_pod("p0")
        assert not rounds.cache._prepared
        return found

    assert cost(is_read=False) > 3 * cost(is_read=True)
