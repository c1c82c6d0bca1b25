"""Compiles regular expressions on labels that users put into annotations and Targets.

The engine is RE2, as in Admiralty, whose Go has its syntax: it matches in time linear in the label,
whatever the expression. So what a match costs follows from the size of the compiled program, which
is bounded, as are the memory of each expression and the number of those that are kept.
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


class LabelPattern:
    """A compiled expression."""

    __slots__ = ("_compiled",)

    def __init__(self, text: str) -> None:
        options = re2.Options()
        options.max_mem = _MEMORY
        options.log_errors = False  # RE2 would write the user's text to standard error
        options.never_capture = True
        self._compiled = re2.compile(text.encode(), options)

    @property
    def size(self) -> int:
        """The number of instructions of the program."""
        return int(self._compiled.programsize)

    def matches(self, label: str) -> bool:
        """Tell whether the expression matches anywhere in a label, which is written `key=value`."""
        return self._compiled.search(label.encode(errors="replace")) is not None


@lru_cache(maxsize=_KEPT)
def compile_safe(text: str) -> LabelPattern:
    """Compile the expression, for use on labels; ConfigError says why it is unfit."""
    if len(text) > LENGTH:
        raise ConfigError(f"it is longer than {LENGTH} characters: shorten it")

    try:
        pattern = LabelPattern(text)
    except (re2.error, UnicodeEncodeError) as error:
        raise _unfit(error) from error

    if pattern.size > _PROGRAM:
        raise _too_large()

    return pattern


def _unfit(error: Exception) -> ConfigError:
    first = error.args[0] if error.args else ""
    text = first.decode(errors="replace") if isinstance(first, bytes) else str(error)
    if "too large" in text:
        return _too_large()

    return ConfigError(
        f"it is not a regular expression in RE2's syntax ({text}), which has neither look-around "
        "nor back references: rewrite it without"
    )


def _too_large() -> ConfigError:
    return ConfigError(
        "it is too large when compiled: repeat fewer times, for example with + instead of {1,250}"
    )
