"""Keeps what explains a failure of a test on a fleet: fleets are gone when their tests are over.

A failed test shows the last lines of the agents' logs of its fleets. With $VNODE_FAILURES, a
folder, all failures are written there too, a file for each test: `make test`, which runs several
suites side by side, shows them at its end, the first one last.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hack.fleetlib import processes
from tests.kit import Fleet

_LINES: Final = 40  # of each log
_LONGEST: Final = 6_000  # characters of a failure, of which the last say most


def explain(item: pytest.Item, report: pytest.TestReport) -> None:
    """Add to a failed report what the agents of the test's fleets said last, and write it down."""
    if not report.failed:
        return

    found = getattr(item, "funcargs", {}).values()
    for fleet in (value for value in found if isinstance(value, Fleet)):
        report.sections += _logs(fleet.folder)

    if folder := os.environ.get("VNODE_FAILURES"):
        name = re.sub(r"\W+", "-", f"{report.nodeid} {report.when}")[-200:]
        Path(folder, name).write_text(_text(report))


def _logs(folder: Path) -> Iterator[tuple[str, str]]:
    for log in sorted(folder.glob("*/agent*.log")):
        yield str(log.relative_to(folder)), processes.tail(str(log), _LINES)


def _text(report: pytest.TestReport) -> str:
    parts = [report.longreprtext]
    parts += [f"--- {title}\n{text}" for title, text in report.sections]
    text = "\n".join(reversed(parts))  # the failure last
    return f"=== {report.nodeid} ({report.when})\n{text[-_LONGEST:]}\n"
