"""Defines how durations are written on the command line: 90s, 5m, 1h30m, 2d, or seconds alone."""

from __future__ import annotations

from typing import Any, Final

import click

from vnode.api import durations
from vnode.api.errors import ConfigError

_LONGEST: Final = 36_500 * 24 * 3600.0  # seconds, a hundred years
OWN: Final = -1
"""What kubectl takes for a duration that is left to each object."""


class DurationType(click.ParamType[float]):
    """Converts a duration to seconds, which are at least `least`, and at most `most`.

    With `own`, it takes -1 as well, as kubectl does for what each object says itself.
    """

    name = "duration"

    def __init__(self, least: float = 0.0, most: float = _LONGEST, *, own: bool = False) -> None:
        self._least = least
        self._most = most
        self._own = own

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; fail with what would do."""
        if isinstance(value, int | float):
            return float(value)

        text = str(value)
        if self._own and text == str(OWN):
            return float(OWN)

        try:
            found = (
                float(text)
                if text.isascii() and text.isdecimal()
                else durations.seconds(text, "it", days=True)
            )
        except ConfigError:
            self.fail(f"{text[:40]!r} is no duration: write 90s, 5m or 1h30m", param, ctx)

        if found < self._least:
            least = durations.written(self._least)
            self.fail(f"{text[:40]!r} is too short: write {least} or more", param, ctx)

        if found > self._most:
            most = durations.written(self._most)
            self.fail(f"{text[:40]!r} is too long: write {most} or less", param, ctx)

        return found


STEP: Final = click.option(
    "--timeout",
    type=DurationType(1),
    default="60s",
    show_default=True,
    help="For each step; the command goes on after it, and says what is left.",
)
"""The option of commands that wait for each of their steps."""
