from hypothesis import given
from hypothesis import strategies as st

from vnode.api import packing
from vnode.api.packing import PodsOfShape
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.api.shape import Shape
from vnode.kueue import deciding
from vnode.kueue.deciding import AskedPodSet, PodsThere, RoomAnswer, TargetRoom

ONE = Shape({"cpu": 1})


def room(name, *nodes, promised=(), size=100, refusal="", is_final=False, shape=ONE, lack=""):
    """Make a target whose nodes have so many CPUs free."""
    rows = tuple(RowOfNodes(1, {"cpu": cpus}, {"cpu": cpus}) for cpus in nodes)
    alike = (AlikeNodes({}, (), rows),) if rows else ()
    there = Rows((), frozenset(("cpu",)), alike, len(rows), True)
    listed = tuple(PodsOfShape(shape, count) for shape, count in promised)
    pods = {"main": PodsThere(shape, refusal, is_final), "other": PodsThere(shape)}
    free = {"cpu": sum(nodes)}
    return TargetRoom(name, name, pods, there, free, {"cpu": size}, listed, lambda _wanted: lack)


def decide_all(asked, rooms, *, all_known=True):
    return next(filter(None, deciding.steps(asked, rooms, all_known=all_known)))


def decide(count, *rooms, all_known=True):
    return decide_all([AskedPodSet("main", count)], rooms, all_known=all_known)


def test_the_fullest_target_with_room_is_chosen() -> None:
    decision = decide(3, room("a", 10), room("b", 4), room("c", 2))
    assert decision.placement == {"main": {"b": 3}}
    assert decision.message == "target b has room for 3 pods"


def test_a_target_whose_size_is_not_known_comes_last() -> None:
    unknown = TargetRoom("a", "a", {"main": PodsThere(ONE)}, free={"cpu": 4})
    assert decide(3, unknown, room("b", 60)).placement == {"main": {"b": 3}}
    assert decide(3, unknown).placement == {"main": {"a": 3}}


def test_each_target_is_told_with_its_reason() -> None:
    decision = decide(
        3,
        room("a", 2),
        room("b", 2, 2, shape=Shape({"cpu": 2})),
        room("c", 4, promised=[(ONE, 2)]),
        room("d", 9, refusal="untolerated taint"),
        room("e", 9, lack="no room in ResourceQuota q"),
        TargetRoom("f", "f", {"main": PodsThere(ONE)}),
    )
    assert decision.answer is RoomAnswer.LATER
    assert decision.message == (
        "no target has room now for 3 pods: a: Insufficient cpu; b: Insufficient cpu; "
        "c: Insufficient cpu, beside what others are promised; d: untolerated taint; "
        "e: no room in ResourceQuota q; f: what it has free is not known yet"
    )


def test_pods_that_fit_by_their_sum_and_not_on_nodes_are_counted() -> None:
    pieces = room("a", 3, 3, 3, shape=Shape({"cpu": 2}))
    assert (
        decide(4, pieces).message == "no target has room now for 4 pods: a: 3 of 4 pods find a node"
    )


def test_never_is_said_only_if_it_holds_for_each_target() -> None:
    small, wrong = room("a", 2, size=2), room("b", 9, refusal="no such label", is_final=True)
    assert decide(3, small, wrong).answer is RoomAnswer.NEVER
    assert decide(3, small, wrong, all_known=False).answer is RoomAnswer.LATER
    assert decide(3, small, wrong, room("c", 1)).answer is RoomAnswer.LATER
    assert decide(3).answer is RoomAnswer.LATER
    assert decide(3).message == "no target has room now for 3 pods: there is no target"


def test_pod_sets_without_topology_join_one_target_beside_those_with_it() -> None:
    asked = [AskedPodSet("main", 3, ((frozenset("a"), 3),)), AskedPodSet("other", 2)]
    rooms = [room("a", 4), room("b", 3)]
    assert decide_all(asked, rooms, all_known=True).placement == {
        "main": {"a": 3},
        "other": {"b": 2},
    }


def test_pods_of_a_domain_with_several_targets_go_where_they_fit() -> None:
    asked = [AskedPodSet("main", 6, ((frozenset("ab"), 3), (frozenset("ab"), 3)))]
    decision = decide_all(asked, [room("a", 4), room("b", 3)], all_known=True)
    assert decision.placement == {"main": {"a": 3, "b": 3}}


def test_pods_that_go_to_real_nodes_need_no_target() -> None:
    asked = [AskedPodSet("main", 6, ((frozenset(("machine",)), 6),))]
    decision = decide_all(asked, [room("a", 1)], all_known=True)
    assert (decision.answer, decision.placement) == (RoomAnswer.NOW, {})


@given(
    st.lists(st.lists(st.integers(0, 6), max_size=4), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3)), min_size=1, max_size=8),
)
def test_all_that_are_told_yes_fit_at_the_same_time(targets, workloads) -> None:
    promised: dict[str, list[tuple[Shape, int]]] = {}
    for count, cpus in workloads:
        shape = Shape({"cpu": cpus})
        rooms = [
            room(str(place), *nodes, promised=promised.get(str(place), ()), shape=shape)
            for place, nodes in enumerate(targets)
        ]
        for node, there in decide(count, *rooms).placement.get("main", {}).items():
            promised.setdefault(node, []).append((shape, there))

    for place, nodes in enumerate(targets):
        rows = room("x", *nodes).rows
        listed = promised.get(str(place), ())
        assert packing.fits(rows, [PodsOfShape(shape, count) for shape, count in listed])
