"""`python -m tests.versions`: runs tests on fleets of several versions of Kubernetes.

Starts one fleet after the other, each with another combination of versions, and runs the chosen
end-to-end tests on it. The table of results goes to stdout, and with `--write` into
docs/versions.md, where rows of combinations that were not run stay. Exits with 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from hack.fleetlib.errors import FleetError
from hack.fleetlib.tools import kubernetes
from tests.kit import ROOT, Fleet
from tests.versions import matrix, results
from tests.versions.matrix import Combination
from tests.versions.results import SuiteOutcome

PAGE = ROOT / "docs" / "versions.md"


def parser() -> argparse.ArgumentParser:
    """Return the options; without any, the whole matrix is run."""
    found = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    found.add_argument(
        "--brief", action="store_true", help="a few tests on one mixed fleet, as in `make test`"
    )
    found.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="SOURCE:TARGETS",
        help="this combination alone, e.g. 1.37:1.33; repeatable",
    )
    found.add_argument("--write", action="store_true", help="put the rows into docs/versions.md")
    found.add_argument("tests", nargs="*", help="other tests than the chosen ones")
    return found


def chosen(arguments: argparse.Namespace) -> list[Combination]:
    """Return the combinations to run; FleetError for a version that is not known."""
    if arguments.brief and not arguments.only:
        return [matrix.MIXED]

    if arguments.only:
        pairs = (text.partition(":") for text in arguments.only)
        resolved = ((kubernetes.resolve(a), kubernetes.resolve(b or a)) for a, _colon, b in pairs)
        return [Combination(source, target, target) for source, target in resolved]

    return matrix.matrix()


def run(combination: Combination, tests: Sequence[str]) -> SuiteOutcome:
    """Run tests on a fleet of these versions; return what came of them."""
    print(f"=== Kubernetes {combination}", flush=True)
    with tempfile.TemporaryDirectory(prefix="vnode-versions-") as folder:
        fleet, report = Fleet(Path(folder) / "fleet"), Path(folder) / "report.xml"
        links = ["--connect", "c1:c2", "--connect", "c1:c3"]
        words = ["c1", "c2", "c3", "--nodes", "3", "--agents", *links, *combination.words]
        fleet.run("up", *words)
        begun = time.monotonic()
        try:
            command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", *tests]
            environment = {**os.environ, "VNODE_TEST_FLEET": str(fleet.folder)}
            code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        finally:
            fleet.run("down")

        today = datetime.now(UTC).date().isoformat()
        return results.read(report, code, time.monotonic() - begun, today)


def main(words: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    try:
        combinations = chosen(arguments)
    except FleetError as error:
        parser().error(str(error))

    tests = arguments.tests or (matrix.BRIEF if arguments.brief else matrix.CHOSEN)
    found: dict[Combination, SuiteOutcome] = {}
    for combination in combinations:
        found[combination] = run(combination, tests)
        if arguments.write:
            PAGE.write_text(results.merged(PAGE.read_text(), found))

    print(results.table(found))
    return 0 if all(outcome.passes for outcome in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
