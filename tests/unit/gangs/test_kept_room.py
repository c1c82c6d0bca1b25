"""Room is kept for gangs half of the time at most, whatever becomes of them, and by turns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.gangs.pods import member, pod, table
from tests.unit.scheduling import costs
from tests.unit.scheduling.builders import ManualClock
from vnode.gangs.gang import Gang
from vnode.gangs.kept_room import KEPT_FOR
from vnode.gangs.membership import GangKey, GroupApi
from vnode.pods.source.gang_controller import GangController

AFTER = 300.0
MADE, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"


class WaitingGangs:
    """Gangs of pairs that fit nowhere, and the controller that keeps room for one of them."""

    def __init__(self) -> None:
        self.gangs = table()
        self.clock = ManualClock()
        self.moved: list[Any] = []
        unused: Any = None
        queue: Any = self
        self.controller = GangController(
            *(unused, self.gangs, unused, unused, queue, unused, unused, self.clock),
            keep_after=AFTER,
        )

    def move(self, event: Any) -> None:
        """Take the place of the queue's."""
        self.moved.append(event)

    def put(self, name: str, namespace: str = "team-a", node: str = "", **metadata: Any) -> None:
        """Put the two pods of a gang, and what a cycle of one of them finds."""
        for number in range(2):
            made = member(
                f"{namespace}-{name}-{number}",
                gang=name,
                namespace=namespace,
                node=node,
                **{"creationTimestamp": MADE, **metadata},
            )
            self.gangs.on_pod(None, made)

        gang = self.find(name, namespace)
        gang.best_node = "t"
        gang.complete_since = None if node else self.clock.seconds

    def remake(self, gang: Gang) -> None:
        """Delete a pod of a gang, which the controller sees, and make it again."""
        each = next(iter(gang.members.values()))
        self.gangs.on_pod(each.pod, None)
        gang.complete_since = None  # by `GangRounds`, as too few are there
        self.look()
        self.gangs.on_pod(None, each.pod)
        gang.complete_since = self.clock.seconds

    def find(self, name: str, namespace: str = "team-a") -> Gang:
        found = self.gangs.get(GangKey(GroupApi.ANNOTATION, namespace, name))
        assert found is not None
        return found

    def look(self) -> None:
        """Do what the controller does at each look at a gang."""
        self.controller._end_kept_room()
        for gang in self.gangs.values():
            self.controller._keep_room(gang)

    @property
    def kept(self) -> str:
        return str(self.gangs.kept.key) if self.gangs.kept is not None else ""

    def left(self) -> float:
        return self.controller._turns.left(self.clock.seconds)

    def kept_off(self, seconds: int) -> int:
        """Return for how long a younger pod of another namespace is kept off, of so many."""
        total, other = 0, pod("web", namespace="team-c", creationTimestamp=LATER)
        for _ in range(0, seconds, 10):
            self.clock.seconds += 10
            self.look()
            kept = self.gangs.kept
            total += 10 if kept is not None and kept.keeps_off(other, {"cpu": 1}) else 0

        return total


@pytest.fixture
def waiting() -> WaitingGangs:
    return WaitingGangs()


def test_gangs_that_are_made_again_just_in_time_keep_others_off_half_of_the_time(
    waiting: WaitingGangs,
) -> None:
    for name in "ab":
        waiting.put(name)

    off = waiting.kept_off(int(AFTER))
    for _ in range(720):
        if waiting.kept and waiting.left() <= 10:
            waiting.remake(waiting.find(waiting.kept))

        off += waiting.kept_off(10)

    assert 3000 <= off <= 3600 + KEPT_FOR / 2


def test_gangs_that_start_have_the_next_of_their_namespace_wait_and_no_other(
    waiting: WaitingGangs,
) -> None:
    for name in "ab":
        waiting.put(name)

    waiting.kept_off(int(AFTER) + 300)
    assert waiting.kept == "a"
    uids = list(waiting.find("a").members)
    waiting.put("a", node="t")
    for uid in uids:
        waiting.gangs.saw_reserved(uid, reserved=True)

    assert waiting.find("a").is_started
    waiting.look()
    assert waiting.kept == ""
    waiting.put("theirs", namespace="team-b")
    waiting.find("theirs", "team-b").complete_since = 0.0
    waiting.look()
    assert waiting.kept == "theirs"


def test_a_gang_that_starts_gives_its_namespace_no_more_than_half_of_the_time(
    waiting: WaitingGangs,
) -> None:
    for name in "ab":
        waiting.put(name)

    waiting.kept_off(int(AFTER) + 100)
    waiting.put("a", node="t")
    waiting.find("a").is_started = True
    waiting.look()
    assert waiting.kept_off(80) == 0
    assert waiting.kept_off(100) > 0


def test_namespaces_have_their_turns_however_many_old_gangs_one_has(
    waiting: WaitingGangs,
) -> None:
    for number in range(10):
        waiting.put(f"old{number}", namespace="team-a")

    waiting.clock.seconds = 100.0
    waiting.put("young", namespace="team-b")
    seen = list[str]()
    for _ in range(900):
        waiting.kept_off(10)
        if waiting.kept and seen[-1:] != [waiting.kept]:
            seen.append(waiting.kept)

    assert seen[:4] == ["old0", "young", "old0", "young"]


def test_a_gang_that_fits_into_no_target_stands_in_nobodys_way(waiting: WaitingGangs) -> None:
    waiting.put("huge")
    waiting.find("huge").best_node = ""
    waiting.clock.seconds = 100.0
    waiting.put("large")
    waiting.kept_off(int(AFTER) + 100)
    assert waiting.kept == "large"


def test_gangs_that_no_target_is_large_enough_for_do_not_each_look_at_all() -> None:
    def cost(gangs: int) -> int:
        waiting = WaitingGangs()
        for number in range(gangs):
            waiting.put(f"g{number}")
            waiting.find(f"g{number}").best_node = ""

        waiting.clock.seconds += AFTER
        return costs.bytecodes(waiting.look)

    assert cost(200) < 2.5 * cost(100)


def test_a_gang_that_a_target_is_large_enough_for_by_now_is_found_when_it_asks(
    waiting: WaitingGangs,
) -> None:
    for name in "ab":
        waiting.put(name)
        waiting.find(name).best_node = ""

    waiting.clock.seconds += AFTER
    waiting.look()
    assert not waiting.kept
    waiting.find("b").best_node = "a"
    waiting.look()
    assert waiting.kept == str(waiting.find("b").key)
