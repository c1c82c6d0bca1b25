"""The command line of `hack/conformance`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import cachefolder, progress
from hack.fleetlib.conformance import arrange, comparing, selection, suite
from hack.fleetlib.conformance.selection import Selection
from hack.fleetlib.conformance.suite import PASSED, SuiteRun
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.tools import binaries

if TYPE_CHECKING:
    from hack.fleetlib.conformance.comparing import Comparison
    from hack.fleetlib.conformance.selection import Part

_DESCRIPTION = """Run specs of Kubernetes' own suite through a virtual node and straight, both at
once, and compare: docs/conformance.md. Ends with 1 if a spec fails through the virtual node only
and is not expected to. Needs root and hack/realnode-packages."""


def parser() -> argparse.ArgumentParser:
    """Make the parser, apart from `main` for the tests."""
    made = argparse.ArgumentParser(prog="hack/conformance", description=_DESCRIPTION)
    parts = made.add_mutually_exclusive_group()
    parts.add_argument(
        "--short",
        dest="part",
        action="store_const",
        const="short",
        help="a part that takes ten minutes",
    )
    parts.add_argument(
        "--brief",
        dest="part",
        action="store_const",
        const="brief",
        help="a few specs, and through the virtual node only: what `make test` runs",
    )
    made.set_defaults(part="focus")
    made.add_argument(
        "--focus",
        action="append",
        default=[],
        metavar="REGEX",
        help="these specs in place of the listed ones; repeatable",
    )
    made.add_argument(
        "--processes", type=int, default=4, help="specs at a time, each way (%(default)s)"
    )
    made.add_argument("--once", action="store_true", help="do not try again what fails")
    made.add_argument(
        "--fleet", type=Path, metavar="DIR", help="of --keep, to be used again; it stays"
    )
    made.add_argument(
        "--keep", type=Path, metavar="DIR", help="start the clusters there, and leave them up"
    )
    made.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="where logs and reports of the suite go (`conformance` in the cache folder)",
    )
    return made


def main(argv: list[str] | None = None) -> int:
    """Run the suite; whatever happens, the clusters are taken down unless they are to stay."""
    arguments = parser().parse_args(argv)
    arguments.output = arguments.output or folder(arguments.part)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        comparison = _run(arguments)
    except (FleetError, TimeoutError) as error:
        progress.say(f"hack/conformance: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    text = comparing.report(comparison)
    (arguments.output / "report.md").write_text(f"{text}\n")
    print(text)
    progress.say(f"logs, reports and this table are in {arguments.output}")
    return 0 if comparison.ok else 1


def folder(part: Part) -> Path:
    """Return where logs and reports go; the brief suite may run beside another one."""
    return cachefolder.path() / ("conformance-brief" if part == "brief" else "conformance")


def _run(arguments: argparse.Namespace) -> Comparison:
    chosen = selected(arguments.focus, arguments.part)
    programs = binaries.locate(suite.PROGRAMS)
    both = arguments.part != "brief"
    session = _Session(programs, arguments.output, arguments.processes, both)
    if arguments.fleet is not None:
        return session.compare(
            LocalFleet(arguments.fleet.resolve() / "fleet"), chosen, arguments.once
        )
    if arguments.keep is not None:
        started = arrange.start(arguments.keep.resolve())
        progress.say(f"to end the clusters: hack/fleet down {started.directory}")
        return session.compare(started, chosen, arguments.once)
    with tempfile.TemporaryDirectory(prefix="vnode-conformance-") as directory:
        started = arrange.start(Path(directory))
        try:
            return session.compare(started, chosen, arguments.once)
        finally:
            started.down()


def selected(focus: list[str], part: Part) -> Selection:
    """Return what is to be run: what `focus` says, else what that list has."""
    if focus:
        return Selection(tuple(focus), ())
    return selection.specs(selection.SPECS.read_text(), part)


@dataclass(frozen=True, slots=True)
class _Session:
    programs: dict[str, Path]
    output: Path
    processes: int
    both: bool
    """False: specs are not run straight, and taken to pass there."""

    def compare(self, fleet: LocalFleet, chosen: Selection, once: bool) -> Comparison:
        """Run the suite both ways; what fails through only is tried once more, one by one.

        Specs wait for seconds where a busy machine takes minutes.
        """
        expected = selection.differences(selection.DIFFERENCES.read_text())
        ways = [SuiteRun("through", fleet.kubeconfig(arrange.SOURCE), self.output)]
        if self.both:
            ways.append(SuiteRun("straight", fleet.kubeconfig(arrange.TARGET), self.output))
        through, *others = suite.run_all(ways, chosen, self.processes, self.programs)
        straight = others[0] if others else dict.fromkeys(through, PASSED)
        first = comparing.compare(through, straight, expected)
        if first.ok or once:
            return first
        again = SuiteRun("again", fleet.kubeconfig(arrange.SOURCE), self.output)
        names = selection.only(first.unexpected)
        [second] = suite.run_all([again], names, 1, self.programs)
        return comparing.compare(through | second, straight, expected)
