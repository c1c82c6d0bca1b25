"""Formats amounts of resources for people: `10.5` cores, `22 GiB`. Pure."""

from __future__ import annotations

from typing import Final

from vnode.api import resources

_MILLI: Final = 1000
_GIB: Final = 1 << 30
_SUFFIX: Final = " GiB"


def of(resource: str, part: int, whole: int) -> str:
    """Format `10.5 of 96` cores, or `22 of 768 GiB`."""
    return f"{text(resource, part).removesuffix(_SUFFIX)} of {text(resource, whole)}"


def text(resource: str, amount: int) -> str:
    """Format `10.5` cores, `768 GiB`, or what is counted."""
    if resource == resources.MEMORY:
        return f"{_short(amount / _GIB)}{_SUFFIX}"

    if resource == resources.CPU:
        return _short(amount / _MILLI)

    return resources.format_amount(resource, amount)


def _short(amount: float) -> str:
    """Format with one decimal, unless that is 0."""
    return f"{amount:.1f}".removesuffix(".0")
