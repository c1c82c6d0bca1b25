"""Since when there has been room without a break."""

from __future__ import annotations

from vnode.placement.moves.probed_openings import ProbedOpenings


def test_the_time_begins_when_a_node_opens_and_ends_when_it_closes() -> None:
    openings = ProbedOpenings()
    assert openings.since("web", "a") is None
    openings.observe("web", {"a"}, 1.0)
    openings.observe("web", {"a", "b"}, 2.0)
    assert (openings.since("web", "a"), openings.since("web", "b")) == (1.0, 2.0)
    assert openings.since("db", "a") is None
    openings.observe("web", {"b"}, 3.0)
    openings.observe("web", {"a", "b"}, 4.0)
    assert (openings.since("web", "a"), openings.since("web", "b")) == (4.0, 2.0)


def test_a_move_to_a_node_does_not_close_it() -> None:
    openings = ProbedOpenings()
    openings.observe("web", {"a"}, 1.0)
    openings.observe("web", (), 2.0, moving={"a", "b"})
    assert (openings.since("web", "a"), openings.since("web", "b")) == (1.0, None)


def test_a_node_that_was_open_while_pods_waited_there_is_not_believed() -> None:
    openings = ProbedOpenings()
    openings.observe("web", {"a", "b"}, 10.0)
    assert openings.begin_at("web", "a", 15.0)
    assert not openings.begin_at("web", "b", 5.0)
    assert not openings.begin_at("web", "c", 15.0)
    assert (openings.since("web", "a"), openings.since("web", "b")) == (15.0, 10.0)
