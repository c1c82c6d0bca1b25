"""Says which of the known names a mistyped one was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final

import click

_NEAR: Final = 0.6  # of the letters are the same
_MISTYPED: Final = 0.75  # likewise, where other names may be right: JobSet is no mistyped Job


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the question, after a space, to put behind an error; "" if no name is near."""
    found = _nearest(word, known, _NEAR)
    return f" Did you mean {found!r}?" if found else ""


def mistyped(word: str, known: Collection[str]) -> str:
    """Return the known name that was meant by one that may be right as it is; else ""."""
    return "" if word in known else _nearest(word, known, _MISTYPED)


def _nearest(word: str, known: Iterable[str], least: float) -> str:
    by_letters = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), list(by_letters), n=1, cutoff=least)
    return by_letters[found[0]] if found else ""


class OneOf(click.Choice[str]):
    """Takes one of a few words; of a mistyped one, its error says which was probably meant."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word; fail with all that there are, and the one that is near."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(error.message + did_you_mean(str(value), self.choices), param, ctx)
