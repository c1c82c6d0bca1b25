"""What only a terminal gets: colour and output that is drawn again in place.

Pipes and files get plain text. NO_COLOR (to any value) takes the colour away on a terminal too.
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
    """Somebody watches the standard output."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def has_colour() -> bool:
    """Colours are wanted there."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def styled(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """The text in that colour, where colours are wanted."""
    return click.style(text, fg=colour, bold=bold or None) if text and has_colour() else text


def redraw(text: str) -> None:
    """Show this in the place of all that is on the screen."""
    click.echo(_CLEAR + text)
