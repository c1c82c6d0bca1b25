"""The condition of a PodGroup, as kube-scheduler would write it."""

from __future__ import annotations

from vnode.api import kinds
from vnode.api.objects import Object
from vnode.gangs import group_status
from vnode.gangs.group_status import GroupReport

KIND = kinds.NATIVE_GROUPS[1]
WAITS, PLACED = GroupReport(False, "no room"), GroupReport(True, "4 pods go to c2")


def group(*conditions: Object, generation: int = 0) -> Object:
    metadata = {"name": "g", **({"generation": generation} if generation else {})}
    return {"metadata": metadata, "status": {"conditions": list(conditions)}}


def known(status: str, message: str) -> Object:
    name = "PodGroupInitiallyScheduled"
    return {"type": name, "status": status, "message": message, "lastTransitionTime": "1"}


def test_a_condition_tells_since_when_it_is_so_and_of_which_generation() -> None:
    other = {"type": "DisruptionTarget", "status": "True"}
    made = group_status.condition(KIND, group(other, generation=3), WAITS, "2")
    assert made == {
        "type": "PodGroupInitiallyScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "lastTransitionTime": "2",
        "observedGeneration": 3,
    }
    again = group_status.condition(KIND, group(known("False", "not yet")), WAITS, "2")
    assert (again or {})["lastTransitionTime"] == "1"
    placed = group_status.condition(KIND, group(known("False", "no room")), PLACED, "2")
    assert (placed or {})["lastTransitionTime"] == "2"


def test_what_is_said_already_or_was_true_once_is_not_written() -> None:
    assert group_status.condition(KIND, group(known("False", "no room")), WAITS, "2") is None
    for told in (WAITS, PLACED):
        assert group_status.condition(KIND, group(known("True", "")), told, "2") is None
