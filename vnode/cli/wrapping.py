"""Wraps texts to a terminal's width, as `vnode explain` and `vnode doctor` print them. Pure."""

from __future__ import annotations

import textwrap
from typing import Final

from vnode.api import visible

_NARROWEST: Final = 40  # columns; a terminal with fewer wraps by itself


def wrapped(text: str, width: int | None, indent: int = 0) -> list[str]:
    """Return the lines of a text that stands `indent` columns from the left, without these.

    It is one line where there is no width, as in pipes. Words stay whole, so that names can be
    copied.
    """
    if width is None:
        return [visible.line(text)]

    return textwrap.wrap(
        visible.line(" ".join(text.split())),
        max(width, _NARROWEST) - indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def hanging(first: str, text: str, width: int | None) -> list[str]:
    """Return the lines of a text behind `first`; those below stand below the text."""
    top, *rest = wrapped(text, width, len(first))
    return [first + top, *(" " * len(first) + line for line in rest)]
