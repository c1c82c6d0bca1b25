"""Writes what was measured into the table of docs/security.md. Pure, but for the page's path."""

from __future__ import annotations

from typing import Final

from tests import kit

PAGE: Final = kit.ROOT / "docs/security.md"
BEGIN: Final = "<!-- written by make isolation ISOLATION=--write -->"
END: Final = "<!-- until here -->"


def updated(page: str, measured: str) -> str:
    """Return the page with the rows of a table instead of its own of the same names.

    Rows of attacks that were not measured stay, those of new ones come last.
    """
    before, _, rest = page.partition(BEGIN)
    written, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"docs/security.md lacks {BEGIN} or {END}")

    head, rule, *rows = measured.splitlines()
    merged = _by_name(written.strip().splitlines()[2:]) | _by_name(rows)
    table = "\n".join((head, rule, *merged.values()))
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def _by_name(rows: list[str]) -> dict[str, str]:
    return {row.split("|")[1].strip(): row for row in rows}
