"""Initializers of a TrainJob, which its PodGroup counts and which end before the nodes are made."""

from __future__ import annotations

from tests.unit.gangs.pods import pod
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.gangs.membership import GangKey, GroupApi
from vnode.gangs.pod_groups import NO_GANG, GroupStanding
from vnode.gangs.table import Gangs

FIT = GangKey(GroupApi.COSCHEDULING, "default", "fit")
STEP = "jobset.sigs.k8s.io/replicatedjob-name"


def of_step(name: str, step: str) -> Object:
    return pod(name, labels={keys.POD_GROUP: "fit", STEP: step})


DATA, MODEL = of_step("data", "dataset-initializer"), of_step("model", "model-initializer")
NODES = [of_step(f"node-{number}", "node") for number in range(3)]


def counting(minimum: int, *pods: Object) -> Gangs:
    gangs = Gangs(lambda _key: GroupStanding(minimum))
    for each in pods:
        gangs.on_pod(None, each)

    return gangs


def test_initializers_start_by_themselves() -> None:
    gangs = counting(5, DATA, MODEL)
    assert not gangs
    assert [gangs.hold(each) for each in (DATA, MODEL)] == ["", ""]


def test_nodes_wait_for_each_other_and_for_no_initializer() -> None:
    gangs = counting(5, DATA, MODEL, *NODES[:2])
    assert gangs.hold(NODES[0]).startswith("waiting for 1 of 3 pods of the gang fit")
    gangs.on_pod(None, NODES[2])
    assert gangs.hold(NODES[0]) == ""


def test_an_initializer_that_is_tried_again_is_the_same_step() -> None:
    gangs = counting(4, DATA, of_step("data-again", "dataset-initializer"), *NODES)
    assert gangs.minimum(gangs.values()[0]) == 3


def test_a_gang_is_told_of_initializers_that_are_heard_of_later() -> None:
    gangs = counting(5, *NODES)
    told = []
    gangs.subscribe(lambda gang: told.append(gangs.minimum(gang)))
    gangs.on_pod(None, DATA)
    gangs.on_pod(DATA, {**DATA, "status": {"phase": "Succeeded"}})
    gangs.on_pod(None, MODEL)
    assert told == [4, 3]


def test_initializers_that_are_deleted_are_forgotten() -> None:
    gangs = counting(5, DATA, MODEL, *NODES)
    for each in (DATA, MODEL):
        gangs.on_pod(each, None)

    assert gangs.minimum(gangs.get(FIT) or gangs.values()[0]) == 5


def test_a_pod_with_such_a_step_and_without_a_group_is_a_pod_as_any() -> None:
    alone = pod("data", labels={STEP: "dataset-initializer"})
    gangs = counting(NO_GANG, alone)
    assert gangs.of(objects.uid(alone)) is None
