"""Check that lists in pyproject.toml keep up with the files on disk.

A list of what is forbidden or included goes stale in silence: a new package or script is simply not
on it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLUGINS_MAY_IMPORT: Final = {"vnode.api", "vnode.gangs", "vnode.planning", "vnode.scheduling"}


def parts_of_vnode() -> set[str]:
    """Return the names of all packages and modules directly below vnode."""
    found = {path.parent.name for path in (ROOT / "vnode").glob("*/*.py")}
    found |= {path.stem for path in (ROOT / "vnode").glob("*.py")} - {"__init__"}
    return {f"vnode.{name}" for name in found}


def contract(source: str) -> dict[str, Any]:
    """Return the only `forbidden` contract of a package."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    [one] = [each for each in contracts if each.get("source_modules") == [source]]
    return dict(one)


def test_all_that_a_plugin_may_not_import_is_forbidden() -> None:
    forbidden = contract("scheduler_plugins")["forbidden_modules"]
    assert set(forbidden) == parts_of_vnode() - PLUGINS_MAY_IMPORT


def test_every_python_script_without_extension_is_linted() -> None:
    scripts = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "hack").iterdir()
        if path.is_file() and not path.suffix and "python" in path.read_text().split("\n")[0]
    }
    assert set(PROJECT["tool"]["ruff"]["extend-include"]) == scripts


@pytest.mark.parametrize(
    ("library", "importer"),
    [
        (library, importer)
        for each in PROJECT["tool"]["importlinter"]["contracts"]
        for library in each.get("protected_modules", ())
        for importer in each["allowed_importers"]
    ],
)
def test_who_may_import_a_library_does(library: str, importer: str) -> None:
    """import-linter says nothing of a permission that nobody needs any more."""
    place = ROOT / importer.replace(".", "/")
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    texts = [file.read_text() for file in files]
    assert any(f"import {library}" in text or f"from {library}" in text for text in texts)
