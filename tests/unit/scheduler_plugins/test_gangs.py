"""The plugin that holds pods of incomplete gangs, and keeps others off room that is kept."""

from __future__ import annotations

import pytest

from tests.unit.gangs.pods import member, pod, table
from tests.unit.scheduling.builders import cache_of, virtual_node
from tests.unit.scheduling.gpu_targets import make_framework
from vnode.api.objects import Object
from vnode.gangs.kept_room import KeptRoom
from vnode.gangs.membership import GangKey, GroupApi
from vnode.gangs.table import Gangs
from vnode.scheduling.cache import Cache
from vnode.scheduling.status import SUCCESS, unresolvable

OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
ELSEWHERE = unresolvable("the gang is in b")


@pytest.fixture
def cache() -> Cache:
    return cache_of("a", "b")


def spared(name: str, **rest: object) -> Object:
    return pod(name, **{"spec": {"containers": []}, **rest})  # type: ignore[arg-type]


def passed(gangs: Gangs, cache: Cache, wanted: Object) -> set[str]:
    result = make_framework(gangs=gangs).schedule(wanted, cache.snapshot())
    return {scored.name for scored in result.feasible}


def test_a_pod_is_held_until_its_gang_is_complete() -> None:
    first, second = member("a", 2), member("b", 2)
    gangs = table(first)
    framework = make_framework(gangs=gangs)
    assert framework.pre_enqueue(first).message == "waiting for 1 of 2 pods of the gang g"
    assert framework.pre_enqueue(pod("other")).is_success
    gangs.on_pod(None, second)
    assert framework.pre_enqueue(first).is_success


def test_younger_pods_are_kept_off_the_room_of_a_gang_and_it_is_not(cache: Cache) -> None:
    waiting = member("w", 1, creationTimestamp=OLD, spec={"containers": []})
    gangs = table(waiting)
    young, old = (spared("y", creationTimestamp=YOUNG), spared("o", creationTimestamp=OLD))
    assert passed(gangs, cache, young) == {"a", "b"}
    key = GangKey(GroupApi.ANNOTATION, "default", "g")
    gangs.kept = KeptRoom(key, "a", 0, OLD, frozenset())
    assert passed(gangs, cache, young) == {"b"}
    assert passed(gangs, cache, old) == {"a", "b"}
    assert passed(gangs, cache, waiting) == {"a", "b"}


def test_a_pod_whose_node_is_chosen_is_judged_there_only(cache: Cache) -> None:
    framework, snapshot = make_framework(), cache.snapshot()
    result = framework.schedule_on(spared("p"), snapshot, "b", ELSEWHERE)
    assert [scored.name for scored in result.feasible] == ["b"]
    assert result.status is SUCCESS
    assert result.statuses == {"a": ELSEWHERE}
    assert result.excluded == {"a"}
    cache.update_node(virtual_node("b", cordoned=True))
    result = framework.schedule_on(spared("p"), cache.snapshot(), "b", ELSEWHERE)
    assert not result.feasible
    assert result.statuses["b"].plugin == "NodeUnschedulable"
    assert result.excluded == {"a", "b"}
