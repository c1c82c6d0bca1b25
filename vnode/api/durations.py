"""Reads durations as people write them in objects, and compares moments. Pure."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final

from vnode.api.errors import ConfigError

TICK: Final = 0.001
"""Seconds; shorter waits may end before the clock has moved."""

_SLACK: Final = 1.0
"""Seconds by which what is done periodically may come early, to be done with others."""

_DURATION: Final = re.compile(r"(?=.)(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.ASCII)


_IN_DAYS: Final = re.compile(r"(\d{1,6})d", re.ASCII)


_LONGEST: Final = 100 * 365 * 24 * 3600.0  # seconds


def span(seconds: float) -> timedelta:
    """Return a span of time that somebody else has chosen, within a century."""
    return timedelta(seconds=min(max(seconds, -_LONGEST), _LONGEST))


def coalesced(now: float, seconds: float) -> float:
    """Return a delay of up to a second less, which ends when the clock of `now` is at a whole one.

    What many do again and again is then done by several at once. A process that wakes for each
    request alone takes three times as much of the processor for it as for ten at once (1.6 ms and
    0.55 of a small request over TLS, as measured). Delays of a second or less stay as they are.
    """
    if seconds <= _SLACK:
        return seconds

    return max(math.floor((now + seconds + TICK) / _SLACK) * _SLACK - now, 0.0)


def seconds(text: str, where: str, *, days: bool = False) -> float:
    """Return how many seconds `1h30m`, `2m`, `90s` and, with `days`, `7d` are.

    Raises ConfigError.
    """
    if days and (match := _IN_DAYS.fullmatch(text)):
        return float(int(match[1]) * 24 * 3600)

    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConfigError(f'{where}: "{text[:32]}" is no duration: write 90s, 2m or 1h30m')

    hours, minutes, rest = (int(part or 0) for part in match.groups())
    return float(hours * 3600 + minutes * 60 + rest)


def written(length: float) -> str:
    """Write whole seconds as `seconds` reads them, with `days`: `90s` is `1m30s`."""
    whole = int(length)
    if whole and whole % (24 * 3600) == 0:
        return f"{whole // (24 * 3600)}d"

    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
