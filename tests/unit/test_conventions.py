"""Names of classes and docstrings of functions, by the conventions of CONTRIBUTING.md.

A word is a verb if `verbs.txt` has it, because no rule tells a verb from a noun.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
VERBS: Final = frozenset(Path(__file__).with_name("verbs.txt").read_text().split())

Counts = dict[str, int]
Function = ast.FunctionDef | ast.AsyncFunctionDef


RELEASED: Final = ("scheduler_plugins", "vnode")
OTHERS: Final = ("hack", "tests")


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the path and syntax tree of every module in these folders."""
    for path in sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def definitions(tree: ast.AST) -> Iterator[Function | ast.ClassDef]:
    """Yield each function and class, also those within others; expressions have none."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            if isinstance(node, Function | ast.ClassDef):
                yield node

            yield from definitions(node)


def is_shared(path: str) -> bool:
    """Tell whether a module is for others to import: a test's own classes may have short names."""
    return not Path(path).name.startswith("test_")


def class_names(tree: ast.AST) -> Iterator[str]:
    """Yield the name of each class, also of those within others."""
    return (node.name for node in definitions(tree) if isinstance(node, ast.ClassDef))


def repeated_names(modules: Iterable[tuple[str, ast.Module]]) -> Counts:
    """Count the classes of each name that more than one class has, private ones of tests aside."""
    counts = Counter(
        name
        for path, tree in modules
        if is_shared(path)
        for name in class_names(tree)
        if path.startswith(RELEASED) or not name.startswith("_")
    )
    return {name: count for name, count in sorted(counts.items()) if count > 1}


def is_value(function: Function) -> bool:
    """Tell whether a function is used like a value: properties are described by nouns."""
    return any("property" in ast.unparse(each) for each in function.decorator_list)


def begins_with_verb(docstring: str) -> bool:
    """Tell whether the first word is a verb in the imperative, as in "Return the key."."""
    first = re.match(r"[A-Z][a-z]*", docstring.strip())
    return first is not None and first.group().lower() in VERBS


def other_docstrings(tree: ast.AST) -> Iterator[str]:
    """Yield the names of functions, tests aside, whose docstring begins with no verb."""
    for node in definitions(tree):
        if isinstance(node, Function) and not is_value(node) and not node.name.startswith("test_"):
            docstring = ast.get_docstring(node, clean=False)
            if docstring and not begins_with_verb(docstring):
                yield node.name


def test_no_two_classes_share_a_name() -> None:
    assert repeated_names(trees(*RELEASED, *OTHERS)) == {}


@pytest.mark.parametrize("folder", [*RELEASED, *OTHERS])
def test_docstrings_of_functions_begin_with_a_verb(folder: str) -> None:
    found = {path: names for path, tree in trees(folder) if (names := list(other_docstrings(tree)))}
    assert not found, f'"Return the key.", not "The key."; a new verb goes into verbs.txt: {found}'


def test_what_breaks_a_convention_is_seen() -> None:
    tree = ast.parse(
        "class A: pass\n"
        "class B:\n"
        "    class A: pass\n"
        "    @property\n"
        "    def value(self):\n"
        "        'The value.'\n"
        "    def good(self):\n"
        "        'Return the value.'\n"
        "    async def noun(self):\n"
        "        '''The value.'''\n"
        "    def third(self):\n"
        "        '''Returns the value.'''\n"
        "    def mark(self):\n"
        "        '''`count` of them.'''\n"
        "def silent(): pass\n"
    )
    assert repeated_names([("a.py", tree)]) == {"A": 2}
    assert repeated_names([("tests/test_a.py", tree)]) == {}
    assert list(other_docstrings(tree)) == ["noun", "third", "mark"]
