from hypothesis import given
from hypothesis import strategies as st

from vnode.api import packing
from vnode.api.packing import PodsOfShape
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.api.selectors import from_labels
from vnode.api.shape import Shape

MODEL = "nvidia.com/gpu.product"
GPU = "nvidia.com/gpu"


def nodes(count: int, **free: int) -> RowOfNodes:
    amounts = {name.replace("gpu", GPU): amount for name, amount in free.items()}
    return RowOfNodes(count, amounts, amounts)


def rows(*listed: RowOfNodes, model: str = "") -> Rows:
    alike = AlikeNodes({MODEL: model} if model else {}, (), listed)
    return Rows((MODEL,), frozenset(("cpu", GPU)), (alike,), sum(r.count for r in listed), True)


def pods(count: int, *, model: str = "", **wanted: int) -> PodsOfShape:
    requests = {name.replace("gpu", GPU): amount for name, amount in wanted.items()}
    selector = from_labels({MODEL: model} if model else {})
    return PodsOfShape(Shape(requests, selector), count)


def test_pods_of_one_shape_fit_as_often_as_the_rows_say() -> None:
    there = rows(nodes(3, cpu=90, gpu=8), nodes(2, cpu=40, gpu=4))
    assert packing.fits(there, [pods(8, cpu=40, gpu=4)])
    assert packing.unplaced(there, [pods(9, cpu=40, gpu=4)]) == {0: 1}


def test_free_devices_in_pieces_hold_no_pod_that_wants_several() -> None:
    there = rows(nodes(8, cpu=10, gpu=1))
    assert packing.fits(there, [pods(8, cpu=1, gpu=1)])
    assert packing.unplaced(there, [pods(1, cpu=1, gpu=2)]) == {0: 1}


def test_a_large_pod_gets_the_large_node_beside_small_ones_whatever_their_order() -> None:
    there = rows(nodes(1, gpu=8), nodes(4, gpu=1))
    for wanted in ([pods(4, gpu=1), pods(1, gpu=8)], [pods(1, gpu=8), pods(4, gpu=1)]):
        assert packing.fits(there, wanted)


def test_pods_that_name_a_model_take_its_nodes_before_those_that_name_none() -> None:
    a100, t4 = rows(nodes(1, gpu=2), model="A100"), rows(nodes(1, gpu=2), model="T4")
    there = Rows(a100.keys, a100.resources, (*a100.alike, *t4.alike), 2, True)
    assert packing.fits(there, [pods(2, gpu=1), pods(2, gpu=1, model="A100")])
    assert not packing.fits(there, [pods(1, gpu=1), pods(2, gpu=1, model="A100"), pods(2, gpu=1)])


def test_each_of_two_sets_of_three_fits_where_four_do_but_not_both() -> None:
    for there in (rows(nodes(4, cpu=1)), rows(nodes(1, cpu=4)), rows(nodes(2, cpu=2))):
        assert packing.fits(there, [pods(3, cpu=1)])
        assert not packing.fits(there, [pods(3, cpu=1), pods(3, cpu=1)])


_AMOUNTS = st.fixed_dictionaries({"cpu": st.integers(0, 8), "gpu": st.integers(0, 4)})
_NODES = st.lists(st.builds(lambda n, a: nodes(n, **a), st.integers(1, 4), _AMOUNTS), max_size=4)
_PODS = st.lists(
    st.builds(
        lambda n, cpu, gpu: pods(n, cpu=cpu, gpu=gpu),
        st.integers(1, 5),
        st.integers(1, 4),
        st.integers(0, 2),
    ),
    max_size=4,
)


@given(_NODES, _PODS)
def test_what_is_placed_takes_no_more_than_there_is(there, wanted) -> None:
    left = packing.unplaced(rows(*there), wanted)
    for name in ("cpu", GPU):
        free = sum(row.count * row.free[name] for row in there)
        placed = [
            (each.count - left.get(place, 0)) * each.shape.requests.get(name, 0)
            for place, each in enumerate(wanted)
        ]
        assert sum(placed) <= free


@given(_NODES, st.integers(1, 12), st.integers(1, 4))
def test_of_one_shape_it_places_what_the_rows_count(there, count, cpu) -> None:
    listed, asked = rows(*there), pods(count, cpu=cpu)
    missing = packing.unplaced(listed, [asked]).get(0, 0)
    assert count - missing == min(count, listed.fit(asked.shape))


@given(_NODES, _PODS)
def test_what_is_left_out_needs_no_room(there, wanted) -> None:
    if packing.fits(rows(*there), wanted):
        for place in range(len(wanted)):
            assert not packing.unplaced(rows(*there), wanted[place : place + 1])


@given(
    st.lists(st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(1, 99)), max_size=99)
)
def test_pods_of_many_shapes_become_few_that_ask_for_no_less(listed) -> None:
    found = packing.by_shape(listed)
    assert len(found) <= packing.MOST_SHAPES
    assert sum(each.count for each in found) == len(listed)
    asked, counted = packing.total(PodsOfShape(Shape(e), 1) for e in listed), packing.total(found)
    assert all(counted[name] >= amount for name, amount in asked.items())


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(1, 99)),
            st.sampled_from(["", "a100", "h100"]),
            st.integers(1, 9),
        ),
        max_size=99,
    )
)
def test_pods_of_equal_shape_are_together_and_of_many_shapes_few(listed) -> None:
    pods = [
        PodsOfShape(Shape(asked, from_labels({"model": model} if model else {})), count)
        for asked, model, count in listed
    ]
    found = packing.together(pods)
    assert len(found) <= packing.MOST_SHAPES
    assert sum(each.count for each in found) == sum(each.count for each in pods)
    asked, counted = packing.total(pods), packing.total(found)
    assert all(counted[name] >= amount for name, amount in asked.items())
    if len({each.shape.key for each in pods}) <= packing.MOST_SHAPES:
        assert {each.shape.key for each in found} == {each.shape.key for each in pods}
