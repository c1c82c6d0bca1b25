"""The command line of `hack/conformance`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import cachefolder, progress
from hack.fleetlib.conformance import arrange, comparing, selection, suite, whole
from hack.fleetlib.conformance.selection import Selection, SpecGroup
from hack.fleetlib.conformance.session import SuiteSession
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.tools import binaries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.fleetlib.conformance.selection import Part

_DESCRIPTION = """Run specs of Kubernetes' own suite through a virtual node and straight, both at
once, and compare: docs/conformance.md. Ends with 1 if a spec fails through the virtual node only
and is not expected to. Needs root and hack/realnode-packages."""


def parser() -> argparse.ArgumentParser:
    """Make the parser, apart from `main` for the tests."""
    made = argparse.ArgumentParser(prog="hack/conformance", description=_DESCRIPTION)
    _add_parts(made)
    made.set_defaults(part="focus")
    made.add_argument(
        "--resume",
        action="store_true",
        help="with --all: leave out the groups whose outcomes are in --output already",
    )
    made.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="NAME",
        help="with --all: this group of specs.toml in place of all; repeatable",
    )
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


def _add_parts(made: argparse.ArgumentParser) -> None:
    """Add the options of which one chooses a part of the suite."""
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
    parts.add_argument(
        "--all",
        dest="part",
        action="store_const",
        const="all",
        help="all groups of specs.toml, one after the other, which takes hours; "
        "with kube-proxy and CoreDNS in the target",
    )


def main(argv: list[str] | None = None) -> int:
    """Run the suite; whatever happens, the clusters are taken down unless they are to stay."""
    arguments = parser().parse_args(argv)
    arguments.output = arguments.output or folder(arguments.part)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        text, ok = _run(arguments)
    except (FleetError, TimeoutError) as error:
        progress.say(f"hack/conformance: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    (arguments.output / "report.md").write_text(f"{text}\n")
    print(text)
    progress.say(f"logs, reports and this table are in {arguments.output}")
    return 0 if ok else 1


def folder(part: Part) -> Path:
    """Return where logs and reports go; the brief suite may run beside another one.

    What `--all` has come to is kept for `--resume`.
    """
    return cachefolder.path() / (
        "conformance" if part in ("focus", "short") else f"conformance-{part}"
    )


def _run(arguments: argparse.Namespace) -> tuple[str, bool]:
    """Return the report, and whether nothing differs that should not."""
    expected = selection.differences(selection.DIFFERENCES.read_text())
    programs = binaries.locate(suite.PROGRAMS)
    both = arguments.part != "brief"
    with _fleet(arguments) as fleet:
        session = SuiteSession(
            fleet, programs, arguments.processes, expected, both=both, once=arguments.once
        )
        if arguments.part == "all" and not arguments.focus:
            groups = selection.groups(selection.SPECS.read_text(), arguments.group)
            report = whole.run(session, groups, arguments.output, resume=arguments.resume)
            return report.text(), report.ok
        group = SpecGroup("", selected(arguments.focus, arguments.part))
        comparison = session.run(group, arguments.output).compare(expected)
    return comparing.report(comparison), comparison.ok


@contextmanager
def _fleet(arguments: argparse.Namespace) -> Iterator[LocalFleet]:
    services = arguments.part == "all"
    if arguments.fleet is not None:
        yield LocalFleet(arguments.fleet.resolve() / "fleet")
    elif arguments.keep is not None:
        started = arrange.start(arguments.keep.resolve(), services=services)
        progress.say(f"to end the clusters: hack/fleet down {started.directory}")
        yield started
    else:
        with tempfile.TemporaryDirectory(prefix="vnode-conformance-") as directory:
            started = arrange.start(Path(directory), services=services)
            try:
                yield started
            finally:
                started.down()


def selected(focus: list[str], part: Part) -> Selection:
    """Return what is to be run: what `focus` says, else what that list has."""
    if focus:
        return Selection(tuple(focus), ())
    return selection.specs(selection.SPECS.read_text(), part)
