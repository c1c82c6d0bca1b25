from __future__ import annotations

import pytest

from vnode.telemetry import metrics, turn_waits
from vnode.telemetry.turn_waits import HALF, MOST, OTHERS, TurnWaits


class Now:
    """A moment that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_waits_of_a_namespace_are_summed_and_halved_each_minute():
    now = Now()
    waits = TurnWaits(now)
    waits.note("a", 3.0)
    waits.note("a", 1.0)
    assert waits.shown() == {"a": 4.0}
    now.seconds += HALF
    assert waits.shown() == {"a": pytest.approx(2.0)}
    waits.note("a", 1.0)
    assert waits.shown() == {"a": pytest.approx(3.0)}


def test_a_namespace_that_waits_no_longer_is_shown_no_longer():
    now = Now()
    waits = TurnWaits(now)
    waits.note("a", 1.0)
    now.seconds += 20 * HALF
    assert waits.shown() == {}


def test_waits_that_nobody_notices_are_not_kept():
    waits = TurnWaits(Now())
    waits.note("a", 0.001)
    assert waits.shown() == {}


def test_those_that_waited_most_are_shown_and_all_others_as_one():
    waits = TurnWaits(Now())
    for number in range(MOST + 3):
        waits.note(f"team-{number:02}", 100.0 - number)

    shown = waits.shown()
    assert list(shown) == [f"team-{number:02}" for number in range(MOST)] + [OTHERS]
    assert shown[OTHERS] == sum(100.0 - number for number in range(MOST, MOST + 3))


def test_namespaces_without_end_are_not_all_remembered():
    waits = TurnWaits(Now())
    waits.note("long", 500.0)
    for number in range(1000):
        waits.note(f"team-{number}", 1.0)

    assert len(waits._waits) <= 128
    assert "long" in waits.shown()


def test_the_gauge_has_what_waits_here_and_what_another_process_has_said(monkeypatch):
    monkeypatch.setattr(turn_waits, "_places", {})
    monkeypatch.setattr(turn_waits, "_elsewhere", {})
    turn_waits.of("tested").note("team-a", 2.0)
    turn_waits.of("tested").note("", 1.0)
    turn_waits.take("beside", {"team-b": 3.0})
    for _ in turn_waits.measure():
        pass

    def sample(work: str, namespace: str) -> float | None:
        labels = {"work": work, "of_namespace": namespace}
        return metrics.REGISTRY.get_sample_value("vnode_turn_wait_seconds", labels)

    assert sample("tested", "team-a") == pytest.approx(2.0, rel=0.01)
    assert sample("tested", "(cluster-wide)") == pytest.approx(1.0, rel=0.01)
    assert sample("beside", "team-b") == 3.0
    monkeypatch.setattr(turn_waits, "_places", {})
    turn_waits.take("beside", {})
    for _ in turn_waits.measure():
        pass

    assert sample("tested", "team-a") is None
    assert sample("beside", "team-b") is None
