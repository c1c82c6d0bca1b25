"""Which versions are tried together, and the table of what came of it."""

from __future__ import annotations

import pytest

from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import kubernetes
from tests import kit
from tests.versions import __main__ as command
from tests.versions import matrix, results
from tests.versions.matrix import Combination
from tests.versions.results import SuiteOutcome

REPORT = """<?xml version="1.0"?><testsuites>
<testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="5"/></testsuites>"""
WELL = SuiteOutcome(40, 2, 0, 245.0, "2026-01-02")
OLD_ROW = "| 1.36 | 1.33 | 1 | 0 | 5 | 3 min | 2025-01-01 |"
OTHER_ROW = "| 1.37 | 1.36 | 7 | 0 | 0 | 3 min | 2025-01-01 |"


def page(*rows: str) -> str:
    return "\n".join(("# Versions", "", results.table({}), *rows, "", "More text.", ""))


def test_every_minor_is_a_source_and_a_target():
    tried = matrix.matrix()
    assert len(tried) == len(set(tried)) == 10
    assert {one.source for one in tried} == set(kubernetes.VERSIONS)
    assert {one.target for one in tried} == set(kubernetes.VERSIONS)
    assert str(tried[0]) == "1.37 to 1.33"
    assert str(matrix.MIXED) == "1.37 to 1.33 and 1.37"
    assert tried[0].words[:4] == ["--kubernetes", "c1=1.37.2", "--kubernetes", "c2=1.33.5"]


@pytest.mark.parametrize("tests", [matrix.BRIEF, matrix.CHOSEN])
def test_all_tests_that_are_chosen_exist(tests):
    for test in tests:
        file, _colons, name = test.partition("::")
        path = kit.ROOT / file
        assert path.exists(), file
        assert not name or f"async def {name}(" in path.read_text(), test


def test_combinations_can_be_asked_for():
    parsed = command.parser().parse_args(["--only", "1.37:1.33", "--only", "1.34"])
    assert command.chosen(parsed) == [
        Combination("1.37.2", "1.33.5", "1.33.5"),
        Combination("1.34.4", "1.34.4", "1.34.4"),
    ]
    assert command.chosen(command.parser().parse_args(["--brief"])) == [matrix.MIXED]
    assert command.chosen(command.parser().parse_args([])) == matrix.matrix()
    with pytest.raises(FleetError, match="known are"):
        command.chosen(command.parser().parse_args(["--only", "1.20:1.33"]))


def test_a_report_is_counted(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert results.read(report, 1, 9.0, "today") == SuiteOutcome(4, 3, 3, 9.0, "today")


def test_a_run_without_a_report_has_failed(tmp_path):
    assert not results.read(tmp_path / "none.xml", 2, 9.0, "today").passes
    assert not SuiteOutcome(0, 5, 0, 9.0, "today").passes


def test_rows_of_what_was_run_take_the_place_of_older_ones():
    found = {Combination("1.36.3", "1.33.5", "1.33.5"): WELL, matrix.MIXED: WELL}
    assert results.merged(page(OLD_ROW, OTHER_ROW), found) == page(
        "| 1.36 | 1.33 | 40 | 2 | 0 | 4 min | 2026-01-02 |",
        OTHER_ROW,
        "| 1.37 | 1.33, 1.37 | 40 | 2 | 0 | 4 min | 2026-01-02 |",
    )


def test_a_page_without_rows_gets_some():
    assert results.merged(page(), {matrix.MIXED: WELL}).count("| 1.37 | 1.33, 1.37 |") == 1
