"""Compiles regular expressions on labels that users put into annotations and Targets.

The engine is RE2, as in Admiralty, whose Go has its syntax: it matches in time linear in the label,
whatever the expression. So what a match costs follows from the size of the compiled program, which
is bounded, as are the memory of each expression and the number of those that are kept.

A pod is looked at often, with labels that stay, and so are pods of one template: what an expression
said of a label is remembered. So is that one is unfit, which takes as long to find.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import re2

from vnode.api.errors import ConfigError

LENGTH: Final = 512  # characters
_PROGRAM: Final = 1_000  # instructions: less than a millisecond for the longest label
_MEMORY: Final = 256 * 1024  # bytes for one expression: its program, and what matching remembers
_KEPT: Final = 128  # expressions
_REMEMBERED: Final = 256  # labels of each; some 20 MB, if all are as long as can be

_TOO_LARGE: Final = (
    "it is too large when compiled: repeat fewer times, for example with + instead of {1,250}"
)


class LabelPattern:
    """A compiled expression."""

    __slots__ = ("_compiled", "_known")

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.max_mem = _MEMORY
        options.log_errors = False  # RE2 would write the user's text to standard error
        options.never_capture = True
        self._compiled = re2.compile(text.encode(), options)
        self._known: dict[str, bool] = {}

    @property
    def size(self) -> int:
        """The number of instructions of the program."""
        return int(self._compiled.programsize)

    def matches(self, label: str) -> bool:
        """Tell whether the expression matches anywhere in a label, which is written `key=value`."""
        found = self._known.get(label)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()

            found = self._compiled.search(label.encode(errors="replace")) is not None
            self._known[label] = found

        return found


def compile_safe(text: str) -> LabelPattern:
    """Compile the expression, for use on labels; ConfigError says why it is unfit."""
    if len(text) > LENGTH:
        raise ConfigError(f"it is longer than {LENGTH} characters: shorten it")

    compiled = _compiled(text)
    if isinstance(compiled, str):
        raise ConfigError(compiled)

    return compiled


@lru_cache(maxsize=_KEPT)
def _compiled(text: str) -> LabelPattern | str:
    """Return the compiled expression, or why it is unfit."""
    try:
        pattern = LabelPattern(text)
    except (re2.error, UnicodeEncodeError) as error:
        return _unfit(error)

    return _TOO_LARGE if pattern.size > _PROGRAM else pattern


def _unfit(error: Exception) -> str:
    first = error.args[0] if error.args else ""
    text = first.decode(errors="replace") if isinstance(first, bytes) else str(error)
    if "too large" in text:
        return _TOO_LARGE

    return (
        f"it is not a regular expression in RE2's syntax ({text}), which has neither look-around "
        "nor back references: rewrite it without"
    )
