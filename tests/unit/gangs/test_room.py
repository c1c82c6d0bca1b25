"""Whether a target has room for a gang."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api.node_pools import NodePool
from vnode.api.packing import PodsOfShape
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.api.shape import Shape
from vnode.gangs import room
from vnode.gangs.room import FreeInTarget

GPU = "example.com/gpu"


def nodes(*free: int, most: int = 0) -> Rows:
    row = tuple(RowOfNodes(1, {GPU: n}, {GPU: n + most}) for n in free)
    return Rows((), frozenset({GPU}), (AlikeNodes({}, (), row),), len(free), complete=True)


def gang(count: int, gpus: int = 1) -> list[PodsOfShape]:
    return [PodsOfShape(Shape({GPU: gpus}), count)]


def on(*free: int, most: int = 0, **more: object) -> FreeInTarget:
    total = sum(free) + most * len(free)
    return FreeInTarget("east", {GPU: total}, nodes(*free, most=most), **more)  # type: ignore[arg-type]


def test_a_gang_that_fits_is_sure_and_one_that_does_not_says_how_many_do() -> None:
    assert room.find(gang(4), 4, on(3, 1)).is_sure
    found = room.find(gang(6), 6, on(3, 1))
    assert found.refusal == f"4 of 6 have a place in east; 2 wait: Insufficient {GPU}"
    assert found.place == 4


def test_devices_in_pieces_are_no_room() -> None:
    found = room.find(gang(2, gpus=2), 2, on(1, 1, 2))
    assert found.refusal.startswith("1 of 2 have a place in east; 1 waits: Insufficient")


def test_what_others_were_promised_is_taken() -> None:
    others = gang(2)
    assert room.find(gang(4), 4, on(3, 1, promised=others)).refusal
    assert room.find(gang(2), 2, on(3, 1, promised=others)).is_sure


def test_amounts_that_are_rounded_down_do_not_keep_a_gang_out_that_may_fit() -> None:
    found = room.find(gang(4), 4, on(1, 1, most=1))
    assert not found.refusal
    assert not found.is_sure


def test_pods_beyond_the_minimum_need_no_room() -> None:
    assert room.find(gang(9), 4, on(3, 1)).is_sure


def test_a_pool_that_may_grow_is_room_for_as_many_as_its_nodes_hold() -> None:
    pool = NodePool({}, {GPU: 2}, max=2)
    assert room.find(gang(8), 8, on(3, 1, pools=(pool,))).grows
    assert room.find(gang(9), 9, on(3, 1, pools=(pool,))).refusal


def test_a_target_that_does_not_tell_is_left_to_candidates() -> None:
    assert not room.find(gang(4), 4, FreeInTarget("east", None, None)).refusal
    assert not room.find(gang(4), 4, FreeInTarget("east", {GPU: 4}, None)).refusal
    assert room.find(gang(5), 5, FreeInTarget("east", {GPU: 4}, None)).refusal


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(1, 12), st.integers(1, 3))
def test_room_that_is_sure_is_there(free: list[int], count: int, gpus: int) -> None:
    fits = sum(n // gpus for n in free)
    found = room.find(gang(count, gpus), count, on(*free))
    assert found.is_sure == (count <= fits)
    assert bool(found.refusal) == (count > fits)
