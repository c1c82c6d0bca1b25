"""Says which of the known names a mistyped one was probably meant to be. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the question, after a space, to put behind an error; "" if no name is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
