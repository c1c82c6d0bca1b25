"""Modules whose docstring says "Pure" are: they do no I/O, and change no argument.

Their own objects may have state, and their private functions may fill a dict that they are handed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
IO: Final = frozenset({"aiohttp", "asyncio", "socket", "ssl", "subprocess", "threading"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


TREES: Final = {
    module_name(path): ast.parse(path.read_text())
    for package in ("vnode", "scheduler_plugins")
    for path in sorted((ROOT / package).rglob("*.py"))
}
PURE: Final = frozenset(
    name
    for name, tree in TREES.items()
    if re.search(r"\bPure\b", ast.get_docstring(tree) or "") is not None
)


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of vnode that a module imports at run time."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vnode":
            module = node.module or ""
            submodules = {alias.name for alias in node.names if f"{module}.{alias.name}" in TREES}
            yield from (f"{module}.{name}" for name in submodules)
            if len(submodules) < len(node.names):
                yield module


def does_io(tree: ast.Module) -> bool:
    """Tell whether a module waits for something, or imports what does."""
    for node in ast.walk(tree):
        match node:
            case ast.AsyncFunctionDef() | ast.Await():
                return True
            case ast.Import(names):
                if any(alias.name.split(".")[0] in IO for alias in names):
                    return True
            case ast.ImportFrom(module):
                if (module or "").split(".")[0] in IO:
                    return True

    return False


def is_pure(module: str) -> bool:
    return module in PURE or not does_io(TREES[module])


def changes(function: Function) -> Iterator[str]:
    """Yield what a function assigns to in its arguments, but for the object whose method it is."""
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = {each.arg for each in given} - {"self", "cls"}
    rebound = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    changing = ast.Attribute if function.name.startswith("_") else ast.Attribute | ast.Subscript
    for node in ast.walk(function):
        if isinstance(node, changing) and not isinstance(node.ctx, ast.Load):
            root: ast.expr = node
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value

            if isinstance(root, ast.Name) and root.id in names - rebound:
                yield f"{function.name}: {ast.unparse(node)}"


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


@pytest.mark.parametrize("module", sorted(PURE))
def test_a_module_that_says_it_is_pure_imports_what_is_pure(module: str) -> None:
    assert [each for each in imported(TREES[module]) if not is_pure(each)] == []


@pytest.mark.parametrize("module", sorted(PURE))
def test_a_module_that_says_it_is_pure_changes_no_argument(module: str) -> None:
    assert [each for one in functions(TREES[module]) for each in changes(one)] == []


def test_what_is_not_pure_is_seen() -> None:
    tree = ast.parse(
        "from vnode.kube import client\n"
        "from vnode.api import keys\n"
        "def change(workload, other):\n"
        "    workload.shares['a'] = 1\n"
        "    other = copy(other)\n"
        "    other.x = 1\n"
        "    del workload.seats\n"
        "class A:\n"
        "    def change(self, node):\n"
        "        self.x = 1\n"
        "        node.y += 1\n"
    )
    assert [each for each in imported(tree) if not is_pure(each)] == ["vnode.kube.client"]
    assert [each for one in functions(tree) for each in changes(one)] == [
        "change: workload.shares['a']",
        "change: workload.seats",
        "change: node.y",
    ]
