"""Prints all that the commands print; colours, and output that is redrawn, on terminals only.

Pipes and files get plain text. NO_COLOR (with any value) turns colours off on a terminal, too. Text
of clusters may have been written by somebody hostile: of control sequences, only our colours pass.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import Final

import click

from vnode.api import visible

GOOD: Final = "green"
BAD: Final = "red"
DOUBTFUL: Final = "yellow"
FAINT: Final = "bright_black"

_CLEAR: Final = "\x1b[H\x1b[2J"
_OURS: Final = re.compile(r"(\x1b\[(?:0|1|3[123]|90)m)")  # what `styled` writes


def is_terminal() -> bool:
    """Tell whether the standard output is a terminal."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def width() -> int | None:
    """Return how many columns the terminal has; None for pipes and files, which get whole lines."""
    return shutil.get_terminal_size().columns if is_terminal() else None


def has_colour() -> bool:
    """Tell whether output has colours."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def styled(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """Return the text, without control sequences, in that colour where output has colours."""
    text = visible.text(text)
    return click.style(text, fg=colour, bold=bold or None) if text and has_colour() else text


def say(text: str, *, err: bool = False, newline: bool = True) -> None:
    """Print the text, to the standard error if `err`; invisible characters are replaced."""
    click.echo(_cleaned(text), err=err, nl=newline)


def redraw(text: str) -> None:
    """Clear the screen, and print the text."""
    click.echo(_CLEAR + _cleaned(text))


def _cleaned(text: str) -> str:
    if not has_colour():
        return visible.text(text)

    parts = _OURS.split(text)  # every second one is a colour
    return "".join(part if i % 2 else visible.text(part) for i, part in enumerate(parts))
