"""Runs the suite against a cluster and reads its report.

Ginkgo runs several processes of `e2e.test` at once, and lets specs that must be alone wait.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from hack.fleetlib import progress
from hack.fleetlib.api import Api
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from hack.fleetlib.conformance.selection import Selection

Outcome = Literal["passed", "failed", "skipped"]
Outcomes = dict[str, Outcome]

PASSED: Final[Outcome] = "passed"

PROGRAMS: Final = ("e2e.test", "ginkgo", "kubectl")
_FINISHED: Final = "\N{BULLET}"  # what Ginkgo prints for each spec that it has run
_ENDED: Final = re.compile(r"(?:\N{BULLET}|S|P) \[(?:(?P<state>[A-Z]+)\]|[0-9.]+ seconds)")
_LABELS: Final = re.compile(r" \[[^\[\]]*\]$")  # that Ginkgo adds to the name
_FAILED: Final = {"failed", "panicked", "timedout", "interrupted", "aborted"}


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A run of the suite: by what name, against which cluster, into which folder, and how long."""

    name: str
    kubeconfig: Path
    folder: Path
    minutes: int = 180

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def report(self) -> Path:
        return self.folder / f"{self.name}.json"

    def finished(self) -> str:
        """Return the run's name, followed by the number of specs that it has run so far."""
        count = self.log.read_text(errors="replace").count(_FINISHED) if self.log.exists() else 0
        return f"{self.name} {count}"


def command(
    run: SuiteRun,
    selection: Selection,
    processes: int,
    programs: Mapping[str, Path],
    nodes: int,
) -> list[str]:
    """Return the command line of a run; only the first process counts `nodes` by itself."""
    return [
        str(programs["ginkgo"]),
        f"--procs={processes}",
        "--no-color",
        "-v",  # names what has passed, for `logged`
        "--silence-skips",
        "--seed=1",
        f"--timeout={run.minutes}m",
        f"--output-dir={run.folder}",
        f"--json-report={run.report.name}",
        *selection.flags(),
        str(programs["e2e.test"]),
        "--",
        "--provider=skeleton",
        f"--num-nodes={nodes}",
        f"--kubeconfig={run.kubeconfig}",
        f"--kubectl-path={programs['kubectl']}",
    ]


def run_all(
    runs: Iterable[SuiteRun], selection: Selection, processes: int, programs: Mapping[str, Path]
) -> list[Outcomes]:
    """Run the suite in all of these ways at once; FleetError if one makes no report."""
    runs = list(runs)
    started = [
        _start(run, command(run, selection, processes, programs, _nodes(run))) for run in runs
    ]
    try:
        with progress.reported(
            f"running specs {' and '.join(run.name for run in runs)}",
            lambda: ", ".join(run.finished() for run in runs),
            every=60,
        ):
            for process in started:
                process.wait()
    finally:
        for process in started:
            _end(process)
    return [_read(run) for run in runs]


def _nodes(run: SuiteRun) -> int:
    return len(Api(run.kubeconfig).call("GET", "/api/v1/nodes")["items"])


def _start(run: SuiteRun, argv: list[str]) -> subprocess.Popen[bytes]:
    run.folder.mkdir(parents=True, exist_ok=True)
    run.report.unlink(missing_ok=True)
    with run.log.open("wb") as log:
        # A session of its own, so that Ctrl-C ends it by `_end` only, with all that it has started.
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=run.folder,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read(run: SuiteRun) -> Outcomes:
    log = run.log.read_text(errors="replace")
    found = outcomes(json.loads(run.report.read_text())) if run.report.exists() else {}
    if not found and (found := logged(log)):
        progress.say(f"a process of the suite has ended early: what is known is from {run.log}")
    if not found:
        end = "\n".join(log.splitlines()[-20:])
        raise FleetError(f"no spec was run {run.name}; {run.log} ends with:\n{end}")
    return found


def logged(log: str) -> Outcomes:
    """Return how the specs have ended of which the log tells, one after the other.

    Ginkgo writes its report when all of its processes have ended well. One that crashes, by a spec
    that panics in the background, takes the outcomes of all with it.
    """
    found: Outcomes = {}
    lines = log.splitlines()
    for line, following in itertools.pairwise(lines):
        if match := _ENDED.match(line):
            state = (match["state"] or PASSED).lower()
            found[_LABELS.sub("", following).replace("[It] ", "", 1)] = _outcome(state)
    return found


def outcomes(reports: list[dict[str, Any]]) -> Outcomes:
    """Return how each spec that was begun has ended, of Ginkgo's report in JSON.

    A spec that was left out by its name is not in it; one that found its cluster unfit is skipped.
    """
    found: Outcomes = {}
    for report in reports:
        for spec in report.get("SpecReports") or ():
            if spec["LeafNodeType"] == "It" and _begun(spec):
                found[_name(spec)] = _outcome(spec["State"])
    return found


def _begun(spec: dict[str, Any]) -> bool:
    return bool(spec.get("NumAttempts"))


def _name(spec: dict[str, Any]) -> str:
    return " ".join([*(spec.get("ContainerHierarchyTexts") or ()), spec["LeafNodeText"]])


def _outcome(state: str) -> Outcome:
    if state == PASSED:
        return PASSED
    return "failed" if state in _FAILED else "skipped"
