"""Takes the notes of a release out of the changelog. Pure."""

from __future__ import annotations

import re

from hack.fleetlib.errors import FleetError

_HEADING = re.compile(r"^## (\S+)(?: \((.*)\))?\n", re.MULTILINE)
NOT_RELEASED = "not released"


def section(changelog: str, version: str, *, final: bool = False) -> str:
    """Return what the changelog says of a version; FleetError if it has no section of its own.

    A `final` one may not be marked as not released.
    """
    headings = list(_HEADING.finditer(changelog))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        if heading[1] == version:
            if final and heading[2] == NOT_RELEASED:
                raise FleetError(f"CHANGELOG.md: give version {version} a date before it is tagged")
            end = following.start() if following else len(changelog)
            return changelog[heading.end() : end].strip() + "\n"
    raise FleetError(f"CHANGELOG.md has no section '## {version}': write one")
