"""Where tasks are started: a fault in one must end no more than it has to.

A task is started in a group of the very function that waits for it, and then its faults are that
function's; or by one of two pieces. A Supervisor is for what the process is no good without,
KeyedTasks for what is about one link or one object, of which there are many and none may end
another.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import vnode

ROOT: Final = Path(vnode.__file__).parent
STARTERS: Final = {"create_task", "ensure_future", "run_coroutine_threadsafe"}

ALLOWED: Final = {
    ("runtime/supervisor.py", "start"),
    ("runtime/keyed_tasks.py", "start"),
    ("pods/source/scheduler.py", "_cycle"),  # each catches all that goes wrong with its own pod
    ("cli/agent.py", "_serve"),  # the process itself
    ("runtime/loop_thread.py", "start"),  # whoever asked for it waits for its end
    ("runtime/finishing.py", "finish"),  # waits for it, also when it is cancelled
}

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a function or module, without those of functions inside."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, Function):
            yield from own(child)


def groups(function: ast.AST) -> set[str]:
    """Return the names of the TaskGroups that a function waits for."""
    return {
        ast.unparse(item.optional_vars)
        for node in own(function)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if item.optional_vars and ast.unparse(item.context_expr).endswith("TaskGroup()")
    }


def started(function: ast.AST) -> Iterator[str]:
    """Yield how a function starts tasks that it does not wait for: `self._group.create_task` ..."""
    waited = groups(function)
    for node in own(function):
        if isinstance(node, ast.Attribute) and node.attr in STARTERS:
            if ast.unparse(node.value) not in waited:
                yield ast.unparse(node)
        elif isinstance(node, ast.Name) and node.id in STARTERS:
            yield node.id


def places(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (function, how) for each task in a module that outlives its function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Function):
            for how in started(node):
                yield _name(node), how


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Module):
        return "a module"

    return "lambda" if isinstance(node, ast.Lambda) else str(getattr(node, "name", ""))


def test_tasks_are_started_in_few_places() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), function): how
        for path in sorted(ROOT.rglob("*.py"))
        for function, how in places(ast.parse(path.read_text()))
    }
    strange = {place: how for place, how in found.items() if place not in ALLOWED}
    assert not strange, "start these by Supervisor.start, or by Supervisor.keyed"
    assert found.keys() == ALLOWED, "an exception that nobody needs"


def test_a_task_in_a_group_of_others_is_seen() -> None:
    """The test above can fail: these are the ways that there were."""
    tree = ast.parse(
        "async def good():\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        group.create_task(x())\n"
        "async def given(group):\n"
        "    group.create_task(x())\n"
        "async def inside():\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        subscribe(lambda: group.create_task(x()))\n"
        "def kept(self):\n"
        "    start = self._group.create_task\n"
        "asyncio.ensure_future(x())\n"
        "create_task(x())\n"
    )
    assert sorted(places(tree)) == [
        ("a module", "asyncio.ensure_future"),
        ("a module", "create_task"),
        ("given", "group.create_task"),
        ("kept", "self._group.create_task"),
        ("lambda", "group.create_task"),
    ]
