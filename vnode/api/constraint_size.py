"""Bounds the scheduling constraints of a pod, so that one user's do not hold up everybody's pods.

A scheduling cycle evaluates them at each attempt, node by node, and an API server bounds nothing
but the size of the whole pod: thousands of terms fit into it.
"""

from __future__ import annotations

from collections.abc import Collection, Sized
from typing import Any, Final

from vnode.api.errors import ConfigError

TERMS: Final = 100
POD_TERMS: Final = 32
"""Those of pod affinity, and those of anti-affinity: each may be about all namespaces."""
VALUES: Final = 1_000
"""The number of fields, expressions, values and namespaces in all terms together."""


def check(terms: Sized, constraints: Any, field: str, *, most: int = TERMS) -> None:
    """Raise ConfigError if the constraints, which are in that field, have more terms or values."""
    if len(terms) > most:
        raise ConfigError(f"{field} has {len(terms)} terms: use {most} at most")

    if not has_at_most(VALUES, constraints):
        raise ConfigError(f"{field} has over {VALUES} values: use {VALUES} at most")


def has_at_most(limit: int, value: Any) -> bool:
    """Tell whether there are no more elements in nested lists and objects than that."""
    left = limit
    open_: list[Collection[Any]] = [(value,)]
    while open_:
        for part in open_.pop():
            if isinstance(part, dict | list):
                left -= len(part)
                if left < 0:
                    return False

                open_.append(part.values() if isinstance(part, dict) else part)

    return True
