"""What all benchmarks have in common: the parser of their options, and where results go."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hack.fleetlib import cachefolder


def parser(program: str, description: str | None, kind: str = "") -> argparse.ArgumentParser:
    """Return a parser with the option --json; `kind` is how the name of that file begins."""
    found = argparse.ArgumentParser(
        prog=program, description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    default = cachefolder.path() / "bench" / f"{kind}{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    found.add_argument("--json", type=Path, default=default, help="the results (%(default)s)")
    return found


def save(run: msgspec.Struct, text: str, path: Path) -> None:
    """Write the results, and print them as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(run)))
    print(text)
    print(f"all figures: {path}")


def sizes(text: str) -> tuple[int, ...]:
    """Parse the sizes of bursts: positive numbers with commas in between."""
    return tuple(int(word) for word in text.split(","))
