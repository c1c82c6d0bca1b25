"""Counts what work costs, and what is kept after it, without a clock.

A ratio of two times says little on a busy machine. The bytecodes that the interpreter runs are the
same each time, and grow with whatever a loop goes through.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Any

_OURS = ("vnode.", "scheduler_plugins.")
_TOOL = 4  # of those that Python has for tools without a name


def bytecodes(act: Callable[[], object]) -> int:
    """Return how many bytecodes a call runs.

    From Python 3.12 on the interpreter counts itself. What is set to trace them does not have 3.13
    trace all: of code that was traced before, some calls had none.
    """
    return _count(act)


if sys.version_info >= (3, 12):

    def _count(act: Callable[[], object]) -> int:
        count, monitoring = 0, sys.monitoring

        def note(_code: CodeType, _offset: int) -> None:
            nonlocal count
            count += 1

        event = monitoring.events.INSTRUCTION
        monitoring.use_tool_id(_TOOL, "costs")
        monitoring.register_callback(_TOOL, event, note)
        monitoring.set_events(_TOOL, event)
        try:
            act()
        finally:
            monitoring.set_events(_TOOL, monitoring.events.NO_EVENTS)
            monitoring.register_callback(_TOOL, event, None)
            monitoring.free_tool_id(_TOOL)

        return count

else:

    def _count(act: Callable[[], object]) -> int:
        count = 0

        def trace(frame: FrameType, event: str, _arg: Any) -> Any:
            nonlocal count
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
            count += event == "opcode"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            act()
        finally:
            sys.settrace(before)

        return count


def entries(*roots: object) -> int:
    """Return how many entries there are in all containers that objects of ours hold."""
    seen, found, open_ = set[int](), 0, list(roots)
    while open_:
        each = open_.pop()
        if id(each) in seen:
            continue

        seen.add(id(each))
        if isinstance(each, Mapping):
            found += len(each)
            open_ += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            found += len(each)
            open_ += each
        elif type(each).__module__.startswith(_OURS):
            names = [*getattr(each, "__dict__", ()), *_slots(each)]
            open_ += [getattr(each, name) for name in names if hasattr(each, name)]

    return found


def _slots(each: object) -> list[str]:
    return [name for cls in type(each).__mro__ for name in getattr(cls, "__slots__", ())]
