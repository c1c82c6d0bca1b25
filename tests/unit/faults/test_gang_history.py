"""What is seen of gangs while things break is right or a violation, event by event."""

from __future__ import annotations

import pytest

from tests.faults.gangs import HALF, RECOVERY, GangHistory
from tests.unit.faults.delegated_pods import chaperon, delegate, proxy
from vnode.api import keys
from vnode.api.objects import Object

NAMES = ("a", "b", "c")


def member(name: str, *, node: str = "virtual") -> Object:
    made = proxy(name, "train", node=node)
    made["metadata"]["annotations"] |= {keys.GANG: "train", keys.GANG_MINIMUM: "2"}
    return made


class SeenGang:
    """A history in which moments are given."""

    def __init__(self) -> None:
        self.history = GangHistory()
        self.now = 100.0
        for name in NAMES:
            self.history.on_proxy(member(name))

    def see(self, name: str, *, is_there: bool = True) -> None:
        parent = member(name)
        found = delegate(chaperon(parent), parent)
        self.history.on_delegate("c2", found, self.now, is_there=is_there)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.history.look(self.now)

    @property
    def rules(self) -> list[str]:
        return [violation.rule for violation in self.history.violations]


@pytest.fixture
def seen() -> SeenGang:
    """Return a gang of which two start together, and all are bound."""
    made = SeenGang()
    made.history.look(made.now)
    return made


def test_too_few_may_run_for_three_seconds_only(seen: SeenGang) -> None:
    seen.see("a")
    seen.wait(HALF)
    assert seen.rules == []
    for _ in range(2):
        seen.wait(0.1)
        assert seen.rules == ["gangs start together"]


def test_once_enough_have_run_or_one_has_ended_it_is_no_first_start(seen: SeenGang) -> None:
    seen.see("a")
    seen.wait(1)
    seen.see("b")
    seen.see("b", is_there=False)
    seen.wait(60)
    other = SeenGang()
    other.see("a")
    other.see("a", is_there=False)
    other.see("b")
    other.wait(60)
    assert seen.rules == other.rules == []
    assert [gang.name for gang in seen.history.started] == ["train"]


@pytest.mark.parametrize("cluster", ["c1", "c2"])
def test_no_time_counts_while_something_is_broken_there_and_shortly_after(
    seen: SeenGang, cluster: str
) -> None:
    seen.see("a")
    with seen.history.trouble([cluster], lambda: seen.now):
        seen.wait(30)

    seen.wait(RECOVERY + HALF)
    assert seen.rules == []
    seen.wait(0.1)
    assert seen.rules == ["gangs start together"]


def test_what_is_broken_elsewhere_is_no_excuse(seen: SeenGang) -> None:
    seen.see("a")
    with seen.history.trouble(["c3"], lambda: seen.now):
        seen.wait(HALF + 0.1)

    assert seen.rules == ["gangs start together"]


def test_none_is_allowed_before_enough_are_bound_whatever_breaks() -> None:
    history = GangHistory()
    for name in NAMES:
        history.on_proxy(member(name, node="virtual" if name == "a" else ""))

    early = history.on_chaperon(chaperon(member("a")))
    assert early is not None
    late = [member("a"), member("b"), member("c", node="")]
    history.confirm(early, late)  # the watch of the source was late
    assert history.violations == []
    assert history.on_chaperon(chaperon(member("a"))) is None
    other = GangHistory()
    other.on_proxy(member("a"))
    early = other.on_chaperon(chaperon(member("a")))
    assert early is not None
    other.confirm(early, [member("a"), member("b", node="")])
    assert [violation.rule for violation in other.violations] == [
        "no pod of a gang runs before enough are bound"
    ]
