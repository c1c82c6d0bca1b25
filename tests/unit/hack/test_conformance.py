"""The pure parts of the conformance suite: what is selected, how it ended, how it is compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hack.fleetlib.conformance import (
    cli,
    comparing,
    selection,
    suite,
    whole,
)
from hack.fleetlib.conformance.comparing import COLUMNS
from hack.fleetlib.conformance.selection import ListedPattern, Selection, SpecGroup
from hack.fleetlib.conformance.session import SuiteSession
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.tools import binaries

LISTED = """
[[focus]]
specs = '\\[sig-node\\]'
reason = "pods"

[[short]]
specs = 'Probing'
reason = "probes"

[[skip]]
specs = '\\[Slow\\]'
reason = "slow"

[[never]]
specs = 'SSH'
reason = "no server"
"""
GROUPS = """
[[all]]
group = "must"
specs = 'Conformance'
reason = "each cluster has to"
minutes = 5

[[all]]
group = "must-alone"
specs = 'Serial.*Conformance'
reason = "one at a time"
serial = true

[[focus]]
group = "node"
specs = 'Pods'
reason = "pods"

[[focus]]
specs = 'Metrics'
reason = "another group has them"

[[skip]]
specs = 'Slow'
reason = "slow"

[[never]]
specs = 'SSH'
reason = "no server"
"""


def spec(name: str, state: str, *, attempts: int = 1, kind: str = "It") -> dict[str, object]:
    *containers, leaf = name.split("/")
    return {
        "ContainerHierarchyTexts": containers or None,
        "LeafNodeText": leaf,
        "LeafNodeType": kind,
        "State": state,
        "NumAttempts": attempts,
    }


def test_the_short_list_is_run_in_place_of_the_whole_one():
    skip = (r"\[Slow\]", "SSH")
    assert selection.specs(LISTED) == Selection((r"\[sig-node\]",), skip)
    assert selection.specs(LISTED, "short") == Selection(("Probing",), skip)


def test_a_spec_belongs_to_the_first_group_that_names_it():
    serial = r"\[(Serial|Disruptive)\]"
    assert selection.groups(GROUPS) == [
        SpecGroup("must", Selection(("Conformance",), ("SSH", serial)), minutes=5),
        SpecGroup("must-alone", Selection(("Serial.*Conformance",), ("SSH",)), serial=True),
        SpecGroup("node", Selection(("Pods",), ("SSH", "Slow", serial, "Conformance"))),
    ]


def test_groups_can_be_chosen_by_name():
    assert [group.name for group in selection.groups(GROUPS, ["node", "must"])] == ["node", "must"]
    with pytest.raises(FleetError, match="no group 'more'"):
        selection.groups(GROUPS, ["more"])


def test_a_focus_on_the_command_line_takes_the_place_of_the_lists():
    assert cli.selected(["one", "two"], "short") == Selection(("one", "two"), ())


def test_the_brief_suite_writes_beside_the_others():
    folders = {cli.folder(part) for part in ("brief", "all", "focus")}
    assert len(folders) == 3
    assert cli.folder("focus") == cli.folder("short")


@pytest.mark.parametrize(
    "text",
    [
        "[[differs]]\nspecs = 'a'",
        "[[differs]]\nspecs = '('\nreason = 'b'",
        "[[differs]]\nspecs = 'a'\nreason = 'b'\nmore = 1",
        "[[differs",
    ],
)
def test_a_list_that_is_not_as_it_should_be_is_an_error(text: str):
    with pytest.raises(FleetError):
        selection.differences(text)


def test_specs_are_chosen_by_their_whole_names():
    [flag] = selection.only(["[sig-node] Pods (all) run"]).flags()
    pattern = flag.removeprefix("--focus=")
    assert re.search(pattern, "Kubernetes e2e suite [sig-node] Pods (all) run")
    assert not re.search(pattern, "[sig-node] Pods (all) run again")


def test_the_report_says_how_each_spec_that_was_begun_has_ended():
    reports: list[dict[str, Any]] = [
        {
            "SpecReports": [
                spec("[sig-node] Pods/run", "passed"),
                spec("[sig-node] Pods/end", "timedout"),
                spec("[sig-node] Pods/unfit", "skipped"),
                spec("[sig-node] Pods/not chosen", "skipped", attempts=0),
                spec("", "passed", kind="SynchronizedBeforeSuite"),
            ]
        },
        {"SpecReports": None},
    ]
    assert suite.outcomes(reports) == {
        "[sig-node] Pods run": "passed",
        "[sig-node] Pods end": "failed",
        "[sig-node] Pods unfit": "skipped",
    }


def test_without_a_report_the_log_says_how_specs_have_ended():
    log = """
------------------------------
\N{BULLET} [3.012 seconds]
[sig-node] Pods [It] should run [NodeConformance] [sig-node, NodeConformance]
k8s.io/kubernetes/test/e2e/common/node/pods.go:1
------------------------------
\N{BULLET} [FAILED] [80.190 seconds]
[sig-apps] Job when it fails [It] should end [Conformance] [sig-apps, Conformance]
------------------------------
S [SKIPPED] [0.1 seconds]
[sig-cli] kubectl [It] logs [sig-cli]
"""
    assert suite.logged(log) == {
        "[sig-node] Pods should run [NodeConformance]": "passed",
        "[sig-apps] Job when it fails should end [Conformance]": "failed",
        "[sig-cli] kubectl logs": "skipped",
    }


@pytest.mark.parametrize(
    ("through", "straight", "verdict"),
    [
        ("passed", "passed", "pass both"),
        ("failed", "failed", "fail both"),
        ("failed", "passed", "fails through only"),
        ("failed", "skipped", "fails through only"),
        ("skipped", "passed", "fails through only"),
        ("passed", "failed", "fails straight only"),
        ("skipped", "skipped", "skipped"),
    ],
)
def test_two_outcomes_make_a_verdict(through: str, straight: str, verdict: str):
    found = comparing.compare({"[sig-node] a": through}, {"[sig-node] a": straight}, [])  # type: ignore[dict-item]
    assert found.verdicts == {"[sig-node] a": verdict}
    assert found.ok == (verdict != "fails through only")


def test_a_spec_that_was_never_begun_through_the_node_counts_as_failing_through_it():
    assert not comparing.compare({}, {"a": "passed"}, []).ok


def test_an_expected_difference_is_told_with_its_reason():
    found = comparing.compare(
        {"a b": "failed"}, {"a b": "passed"}, [ListedPattern("b$", "by design")]
    )
    assert found.ok
    assert found.expected == {"a b": "by design"}
    assert "by design\n    a b" in comparing.report(found)


def test_an_expected_difference_whose_specs_all_pass_is_told_as_outdated():
    listed = [ListedPattern("a", "x"), ListedPattern("b", "y"), ListedPattern("c", "z")]
    straight: suite.Outcomes = {"a 1": "passed", "a 2": "passed", "b 1": "passed", "b 2": "passed"}
    found = comparing.compare({**straight, "b 2": "failed"}, straight, listed)
    assert found.outdated == ["a"]
    assert found.ok


def test_the_table_has_a_row_for_each_group_and_one_for_all():
    through: suite.Outcomes = {"[sig-node] a": "passed", "[sig-cli] b": "failed", "c": "skipped"}
    straight: suite.Outcomes = {"[sig-node] a": "passed", "[sig-cli] b": "passed", "c": "skipped"}
    head, _, *rows = comparing.table(comparing.compare(through, straight, [])).splitlines()
    assert head == f"|  | specs | {' | '.join(COLUMNS)} |"
    assert rows == [
        "| others | 1 | 0 | 0 | 0 | 0 | 1 |",
        "| sig-cli | 1 | 0 | 0 | 1 | 0 | 0 |",
        "| sig-node | 1 | 1 | 0 | 0 | 0 | 0 |",
        "| all | 3 | 1 | 0 | 1 | 0 | 1 |",
    ]


def test_the_table_of_groups_counts_what_each_cluster_must_pass():
    groups = {
        "api": comparing.compare({"a [Conformance]": "passed"}, {"a [Conformance]": "passed"}, []),
        "node": comparing.compare({"b": "failed", "c": "failed"}, {"b": "passed"}, []),
    }
    assert comparing.table_of_groups(groups).splitlines()[2:] == [
        "| api | 1 | 1 | 0 | 0 | 0 | 0 |",
        "| node | 2 | 0 | 0 | 2 | 0 | 0 |",
        "| all | 3 | 1 | 0 | 2 | 0 | 0 |",
        "| of them [Conformance] | 1 | 1 | 0 | 0 | 0 | 0 |",
    ]


def test_the_report_of_groups_names_what_did_not_pass_group_by_group():
    expected = [ListedPattern("a", "by design")]
    passed: suite.Outcomes = {"a 1": "passed"}
    groups = {
        "one": comparing.compare({**passed, "b": "failed"}, {**passed, "b": "failed"}, expected),
        "two": comparing.compare({"a 2": "failed"}, {"a 2": "passed"}, expected),
    }
    text = comparing.report_of_groups(groups, {"three": "not yet run"})
    assert (
        "## one\n\nFail both:\n  b\n\n## two\n\nExpected to differ:\n  by design\n    a 2" in text
    )
    assert "Groups that were not run:\n  three: not yet run" in text
    assert "take them off" not in text  # the second group needs it
    assert "take them off" in comparing.report_of_groups({"one": groups["one"]}, {})


def test_what_fails_through_only_is_named():
    found = comparing.compare({"a": "failed"}, {"a": "passed"}, [])
    assert "Fail through the virtual node only:\n  a" in comparing.report(found)


class Suites:
    """Stands for the suite: says how specs end, run by run, and keeps what it was asked."""

    def __init__(self, *ends: suite.Outcomes) -> None:
        self.ends = list(ends)
        self.asked: list[tuple[list[str], Selection, int]] = []

    def run_all(self, runs, selection, processes, programs):
        self.asked.append(([run.name for run in runs], selection, processes))
        if not self.ends:
            raise FleetError("no spec was run")
        return [self.ends.pop(0) for _ in runs]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run the command on clusters that are not there; returns what it ends with."""
    monkeypatch.setattr(binaries, "locate", lambda names: {})
    monkeypatch.setattr(LocalFleet, "kubeconfig", lambda self, name: tmp_path / name)

    def run(ends: Suites, *words: str) -> int:
        monkeypatch.setattr(suite, "run_all", ends.run_all)
        where = ["--fleet", str(tmp_path), "--output", str(tmp_path), "--focus", "a"]
        return cli.main([*where, *words])

    return run


def test_what_fails_through_only_is_tried_once_more_alone(play, tmp_path: Path):
    ends = Suites({"a": "failed", "b": "passed"}, {"a": "passed", "b": "passed"}, {"a": "passed"})
    assert play(ends) == 0
    both, again = ends.asked
    assert both == (["through", "straight"], Selection(("a",), ()), 4)
    assert again == (["again"], selection.only(["a"]), 1)
    assert "| all | 2 | 2 |" in (tmp_path / "report.md").read_text()


def test_the_command_fails_if_a_spec_fails_through_only_twice(play):
    ends = Suites({"a": "failed"}, {"a": "passed"}, {"a": "failed"})
    assert play(ends) == 1


def test_what_cannot_be_tried_again_stays_as_it_was(play, tmp_path: Path):
    assert play(Suites({"a": "failed", "b": "passed"}, {"a": "passed", "b": "passed"})) == 1
    assert "| all | 2 | 1 | 0 | 1 |" in (tmp_path / "report.md").read_text()


def test_nothing_is_tried_again_if_the_command_says_so(play):
    ends = Suites({"a": "failed"}, {"a": "passed"})
    assert play(ends, "--once") == 1
    assert len(ends.asked) == 1


@pytest.fixture
def play_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run groups on clusters that are not there; returns the report."""
    monkeypatch.setattr(LocalFleet, "kubeconfig", lambda self, name: tmp_path / name)

    def run(ends: Suites, *groups: SpecGroup, resume: bool = False) -> whole.WholeReport:
        monkeypatch.setattr(suite, "run_all", ends.run_all)
        session = SuiteSession(LocalFleet(tmp_path), {}, 4, [])
        return whole.run(session, groups, tmp_path, resume=resume)

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return run


ONE = SpecGroup("one", Selection(("a",), ()))
TWO = SpecGroup("two", Selection(("b",), ()), serial=True)


def test_serial_specs_are_run_one_way_after_the_other(play_all):
    ends = Suites({"a": "passed"}, {"a": "passed"}, {"b": "passed"}, {"b": "passed"})
    assert play_all(ends, ONE, TWO).ok
    assert [(ways, processes) for ways, _, processes in ends.asked] == [
        (["through", "straight"], 4),
        (["through"], 1),
        (["straight"], 1),
    ]


def test_a_run_goes_on_after_the_groups_that_are_through(play_all, tmp_path: Path):
    report = play_all(Suites({"a": "passed"}, {"a": "failed"}), ONE, TWO)
    assert not report.ok
    assert report.not_run == {"two": "no spec was run"}
    assert "| one | 1 | 0 | 0 | 0 | 1 | 0 |" in (tmp_path / "report.md").read_text()

    ends = Suites({"b": "passed"}, {"b": "passed"})
    resumed = play_all(ends, ONE, TWO, resume=True)
    assert resumed.ok
    assert resumed.groups["one"].verdicts == {"a": "fails straight only"}
    assert {ways[0] for ways, *_ in ends.asked} == {"through", "straight"}
    assert len(ends.asked) == 2


def test_without_being_told_to_go_on_all_groups_are_run_again(play_all):
    play_all(Suites({"a": "failed"}, {"a": "failed"}), ONE)
    assert play_all(Suites({"a": "passed"}, {"a": "passed"}), ONE).groups["one"].verdicts == {
        "a": "pass both"
    }
