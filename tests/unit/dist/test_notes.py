"""Notes of a release are a section of the changelog."""

from __future__ import annotations

import pytest

from hack.distlib import notes
from hack.fleetlib.errors import FleetError

CHANGELOG = """# Changelog

## 0.3.0 (not released)

New things.

### Upgrading

Nothing to do.

## 0.2.0 (2026-12-01)

Old things.
"""


def test_a_section_ends_where_the_next_version_begins():
    text = "New things.\n\n### Upgrading\n\nNothing to do.\n"
    assert notes.section(CHANGELOG, "0.3.0") == text
    assert notes.section(CHANGELOG, "0.2.0", final=True) == "Old things.\n"


@pytest.mark.parametrize(
    ("version", "final", "cure"),
    [("0.3.0", True, "give version 0.3.0 a date"), ("0.2", False, "no section '## 0.2'")],
)
def test_what_is_missing_is_said(version: str, final: bool, cure: str):
    with pytest.raises(FleetError, match=cure):
        notes.section(CHANGELOG, version, final=final)
