"""Chooses what is told where there is more than is shown: as much of each namespace. Pure.

Whoever has the rights of one namespace may have any number of pods and Targets with which something
is wrong, each with other words, and must not hide what is wrong with those of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TypeVar

from vnode.api.turns import Turns, by_turns

T = TypeVar("T")


def first(items: Iterable[T], namespace: Callable[[T], str], most: int) -> list[T]:
    """Return the first items of each namespace, by turns, and no more than so many."""
    turns: Turns[str] = Turns(1.0)
    found: list[T] = []
    with closing(by_turns(turns, items, namespace)) as ordered:
        for item in ordered:
            if len(found) == most:
                break

            turns.pay(namespace(item), 1.0)
            found.append(item)

    return found
