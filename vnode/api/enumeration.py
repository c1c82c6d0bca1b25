"""Writes many names into one line for users: the first few, and how many more there are. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def some(names: Sequence[str], most: int) -> str:
    """Return at most so many names, such as `a, b and 3 more`; "" if there are none."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
