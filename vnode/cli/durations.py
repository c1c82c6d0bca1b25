"""Defines how durations are written on the command line: 90s, 5m, 1h30m, or seconds alone."""

from __future__ import annotations

from typing import Any, Final

import click

from vnode.api import durations
from vnode.api.errors import ConfigError


class DurationType(click.ParamType[float]):
    """Converts a duration to seconds, which are at least `least`."""

    name = "duration"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; fail with what would do."""
        if isinstance(value, int | float):
            return float(value)

        text = str(value)
        try:
            found = float(text) if text.isdecimal() else durations.seconds(text, "it", days=True)
        except ConfigError:
            self.fail(f"{text[:40]!r} is no duration: write 90s, 5m or 1h30m", param, ctx)

        if found < self._least:
            self.fail(f"{text[:40]!r} is too short: write {self._least:g}s or more", param, ctx)

        return found


STEP: Final = click.option(
    "--timeout",
    type=DurationType(1),
    default="60s",
    show_default=True,
    help="For each step; the command goes on after it, and says what is left.",
)
"""The option of commands that wait for each of their steps."""
