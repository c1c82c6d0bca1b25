"""Since when there has been room without a break."""

from __future__ import annotations

from vnode.placement.moves.probed_room import ProbedRoom


def test_the_time_begins_when_a_node_opens_and_ends_when_it_closes() -> None:
    room = ProbedRoom()
    assert room.since("a") is None
    room.observe({"a"}, 1.0)
    room.observe({"a", "b"}, 2.0)
    assert (room.since("a"), room.since("b")) == (1.0, 2.0)
    room.observe({"b"}, 3.0)
    room.observe({"a", "b"}, 4.0)
    assert (room.since("a"), room.since("b")) == (4.0, 2.0)


def test_a_move_to_a_node_does_not_close_it() -> None:
    room = ProbedRoom()
    room.observe({"a"}, 1.0)
    room.observe((), 2.0, moving={"a", "b"})
    assert (room.since("a"), room.since("b")) == (1.0, None)


def test_a_node_that_was_open_while_pods_waited_there_is_not_believed() -> None:
    room = ProbedRoom()
    room.observe({"a", "b"}, 10.0)
    waited = {"a": 15.0, "b": 5.0, "c": 15.0}
    assert room.observe({"a", "b"}, 20.0, waited=waited) == {"a"}
    assert (room.since("a"), room.since("b")) == (15.0, 10.0)
