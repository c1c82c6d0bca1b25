"""Writes colours, and output that is redrawn in place, to terminals only.

Pipes and files get plain text. NO_COLOR (with any value) turns colours off on a terminal, too.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import click

GOOD: Final = "green"
BAD: Final = "red"
DOUBTFUL: Final = "yellow"
FAINT: Final = "bright_black"

_CLEAR: Final = "\x1b[H\x1b[2J"


def is_terminal() -> bool:
    """Tell whether the standard output is a terminal."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def has_colour() -> bool:
    """Tell whether output has colours."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def styled(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """Return the text in that colour, where output has colours."""
    return click.style(text, fg=colour, bold=bold or None) if text and has_colour() else text


def redraw(text: str) -> None:
    """Clear the screen, and print the text."""
    click.echo(_CLEAR + text)
