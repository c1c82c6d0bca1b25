"""Tools that know nothing of our kinds read from their status how they are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.api import kstatus
from vnode.api import status_conditions
from vnode.api.objects import Object, Objects
from vnode.cli import manifests

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DECLARED = frozenset(
    {
        "Target",
        "ClusterTarget",
        "Source",
        "ClusterSource",
        "TargetSet",
        "ClusterTargetSet",
        "PlacementPolicy",
        "ClusterPlacementPolicy",
        "OverridePolicy",
        "ClusterOverridePolicy",
    }
)
"""Kinds that people write, and whose status they wait for."""


def of(*built: Object, generation: int = 2, observed: int | None = 2) -> Object:
    status: Object = {"conditions": list(built)}
    if observed is not None:
        status["observedGeneration"] = observed

    return {"metadata": {"name": "x", "generation": generation}, "status": status}


def condition(type_: str, holds: bool) -> Object:
    return status_conditions.build({}, type_, holds, f"{type_}{holds}", "why", NOW)


@pytest.mark.parametrize(
    ("others", "reason", "expected"),
    [
        ([condition("Accepted", True)], "AcceptedTrue", "Current"),
        ([condition("Accepted", False)], "AcceptedFalse", "InProgress"),
        (
            [condition("Accepted", True), condition("Decided", False)],
            "DecidedFalse",
            "InProgress",
        ),
    ],
)
def test_ready_sums_up_the_conditions_of_a_policy(
    others: Objects, reason: str, expected: str
) -> None:
    ready = status_conditions.ready({}, others, NOW)
    assert (ready["type"], ready["reason"], ready["message"]) == ("Ready", reason, "why")
    assert kstatus.status(of(*others, ready)) == expected


def test_a_status_about_an_earlier_generation_is_not_taken_for_the_present_one() -> None:
    ready = condition("Ready", True)
    assert kstatus.status(of(ready)) == "Current"
    assert kstatus.status(of(ready, observed=1)) == "InProgress"
    assert kstatus.status(of(ready, observed=None)) == "Current"  # of an agent before this version


def test_all_kinds_that_people_write_have_the_fields_and_a_column_for_it() -> None:
    found = set()
    for crd in manifests.crds():
        kind, version = crd["spec"]["names"]["kind"], crd["spec"]["versions"][0]
        columns = {column["name"] for column in version["additionalPrinterColumns"]}
        assert "Age" in columns
        if kind not in DECLARED:
            continue

        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        assert "observedGeneration" in status
        assert "Ready" in columns
        assert {"Reason", "Accepted", "Found"} & columns
        found.add(kind)

    assert found == DECLARED
