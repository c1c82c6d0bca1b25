from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.scheduling.builders import pod
from vnode.api import keys
from vnode.api.objects import Object
from vnode.api.shape import Shape
from vnode.kueue.promised_room import PROMISED_FOR, PromisedPodSet, PromisedRoom

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POD = PromisedPodSet(pod("template"), Shape({"cpu": 1}))


def member(uid: str, *, scheduler: str = keys.PROXY_SCHEDULER, **fields: Any) -> Object:
    made = pod(uid, schedulerName=scheduler, **fields)
    made["metadata"]["annotations"] = {keys.KUEUE_WORKLOAD: "w/main"}
    return made


@pytest.fixture
def room() -> PromisedRoom:
    room = PromisedRoom()
    room.make("default/w", {"main": {"t": 3}}, {"main": POD}, NOW, anew=True)
    return room


def left(room: PromisedRoom, now: datetime = NOW, but: str = "") -> int:
    parts = room.parts(now, but=but)
    return sum(count for part in parts if part for node, _, count in part.left if node == "t")


def awaited(room: PromisedRoom) -> set[str]:
    return {uid for part in room.parts(NOW) if part for uid in part.awaited}


def test_it_counts_for_others_for_five_minutes(room: PromisedRoom) -> None:
    assert (left(room), left(room, but="default/w")) == (3, 0)
    assert left(room, NOW + PROMISED_FOR - timedelta(seconds=1)) == 3
    assert left(room, NOW + PROMISED_FOR) == 0


def test_a_proxy_takes_its_part_when_it_is_bound(room: PromisedRoom) -> None:
    room.on_pod(None, member("p"))
    assert (left(room), awaited(room)) == (3, {"p"})
    room.on_pod(member("p"), member("p", node="t"))
    assert (left(room), awaited(room)) == (2, set())


def test_a_pod_that_others_bound_takes_its_part_when_it_runs(room: PromisedRoom) -> None:
    room.on_pod(None, member("p", scheduler="default-scheduler", node="t"))
    assert left(room) == 3
    room.on_pod(None, member("p", scheduler="default-scheduler", node="t", phase="Running"))
    assert left(room) == 2


def test_a_pod_that_has_ended_gives_no_promise_back(room: PromisedRoom) -> None:
    room.on_pod(None, member("p", node="t"))
    room.on_pod(member("p", node="t"), None)
    assert left(room) == 2


def test_pods_of_an_earlier_admission_take_nothing(room: PromisedRoom) -> None:
    room.on_pod(None, member("old", node="t"))
    room.drop("default/w")
    room.make("default/w", {"main": {"t": 3}}, {"main": POD}, NOW, anew=True)
    room.on_pod(member("old", node="t"), member("old", node="t", phase="Running"))
    assert left(room) == 3


def test_after_a_restart_pods_that_are_there_have_their_part(room: PromisedRoom) -> None:
    again = PromisedRoom()
    again.on_pod(None, member("p", node="t"))
    again.make("default/w", {"main": {"t": 3}}, {"main": POD}, NOW, anew=False)
    assert left(again) == 2


def test_pods_of_other_workloads_and_of_none_change_nothing(room: PromisedRoom) -> None:
    other = member("p", node="t", namespace="elsewhere")
    for stranger in (other, pod("q", node="t")):
        room.on_pod(None, stranger)
        room.on_pod(stranger, None)

    assert left(room) == 3
