"""What becomes of pods in whole scenarios of placement is what the golden logs tell."""

from __future__ import annotations

import difflib

import pytest

from tests.unit.placement.golden.scenario import FOLDER, Scenario
from tests.unit.placement.golden.scenarios import SCENARIOS


def changes(scenario: Scenario, log: str, recorded: str) -> str:
    """Return what a scenario does otherwise than its log tells, and the cure; "" if nothing."""
    if log == recorded:
        return ""

    names = scenario.path.name, "as it goes now"
    diff = difflib.unified_diff(log.splitlines(), recorded.splitlines(), *names, lineterm="")
    cure = "If this is wanted, run `make golden`, and commit the logs that it has written anew."
    return "\n".join((*diff, cure))


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_goes_as_its_log_tells(name: str) -> None:
    scenario = SCENARIOS[name]
    log = scenario.path.read_text() if scenario.path.exists() else ""
    if found := changes(scenario, log, scenario.record()):
        pytest.fail(found, pytrace=False)


def test_a_line_that_differs_is_shown_with_the_command_that_writes_the_logs_anew() -> None:
    scenario = SCENARIOS["growth"]
    log = scenario.path.read_text()
    recorded = log.replace("0:30  > the Deployment", "0:31  > the Deployment")
    found = changes(scenario, log, recorded).splitlines()
    assert found[:2] == ["--- growth.log", "+++ as it goes now"]
    assert "-   0:30  > the Deployment is scaled to 2" in found
    assert "+   0:31  > the Deployment is scaled to 2" in found
    assert "`make golden`" in found[-1]
    assert changes(scenario, log, log) == ""


def test_each_log_is_that_of_a_scenario() -> None:
    assert {path.stem for path in FOLDER.glob("*.log")} == SCENARIOS.keys()
