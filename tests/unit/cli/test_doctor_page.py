"""The table of what `vnode doctor` checks has all checks that there are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import vnode.cli.doctor
from vnode.cli.doctor import consequences, endpoint_checks

ROOT: Final = Path(__file__).parents[3]
FOLDER: Final = Path(next(iter(vnode.cli.doctor.__path__)))
CONSTANTS: Final = {
    consequences.AGENT,
    consequences.CONDITION,
    consequences.WEBHOOK,
    endpoint_checks.ADMISSION,
    endpoint_checks.CERTIFICATE,
    endpoint_checks.CLOCK,
    endpoint_checks.KUBELETS,
}


def written(node: ast.AST) -> str | None:
    """Return the name of a check that is written there: in a Finding, or before its result."""
    match node:
        case ast.Call(
            func=ast.Name(id="Finding"),
            args=[ast.Attribute() | ast.Name(), ast.Constant(value=str(name)), *_],
        ):
            return name
        case ast.Yield(value=ast.Tuple(elts=[ast.Constant(value=str(name)), _result])):
            return name
        case ast.Tuple(elts=[ast.Constant(value=str(name)), ast.Call(args=[ast.Name(), *_])]):
            return name
        case ast.AnnAssign(target=ast.Name(id="_CHECK"), value=ast.Constant(value=str(name))):
            return name
        case _:
            return None


def checks() -> Iterator[str]:
    yield from CONSTANTS
    for path in FOLDER.glob("*.py"):
        yield from filter(None, map(written, ast.walk(ast.parse(path.read_text()))))


def test_checks_are_found() -> None:
    assert {"reachable", "rights", "its agent", "elected pods", "issued tokens", "CRDs"} <= {
        *checks()
    }


@pytest.mark.parametrize("name", sorted(set(checks())))
def test_each_check_is_in_the_table(name: str) -> None:
    page = (ROOT / "docs/cli.md").read_text().partition("## What is broken?")[2]
    page = page.partition("\n## ")[0]
    cells = {
        cell.strip()
        for line in page.splitlines()
        if line.startswith("| ")
        for cell in line.split(" | ")[0].removeprefix("| ").split(", ")
    }
    assert name in cells
