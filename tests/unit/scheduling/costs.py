"""Counts what work costs, and what is kept after it, without a clock.

A ratio of two times says little on a busy machine. The bytecodes that the interpreter runs are the
same each time, and grow with whatever a loop goes through.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

_OURS = ("vnode.", "scheduler_plugins.")


def bytecodes(act: Callable[[], object]) -> int:
    """Return how many bytecodes a call runs."""
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
