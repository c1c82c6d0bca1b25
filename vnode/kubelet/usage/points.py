"""Cumulative counters, from sources of two sorts. Pure.

A kubelet counts CPU time from a container's start. The metrics API says only how much was used of
late, so its rates are integrated over the time between readings. Whoever takes two points and
divides, as metrics-server does, gets the rate that was read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

_MOST_CPU: Final = 1e12  # cores, or core-seconds
_MOST_MEMORY: Final = 2**62  # bytes
_LATEST: Final = 4_102_444_800.0  # the year 2100
_LEAST: Final = 1e-6  # core-seconds: to metrics-server a counter of 0 is no value at all


@dataclass(frozen=True, slots=True)
class Rate:
    """What the metrics API says: cores over the `window` seconds before `time`, and bytes."""

    time: float
    window: float
    cores: float
    memory: int


@dataclass(frozen=True, slots=True)
class Total:
    """What a kubelet says: core-seconds since the start, and bytes."""

    time: float
    cpu: float
    memory: int


Reading: TypeAlias = Rate | Total


@dataclass(frozen=True, slots=True)
class Point:
    """What one thing had used by `time`, in Unix seconds of the cluster that measured.

    `cpu` counts core-seconds. `cores` is the rate of late, None until it is known. `memory` is the
    working set in bytes.
    """

    time: float
    cpu: float
    cores: float | None
    memory: int


def plausible(reading: Reading) -> bool:
    """No number that a machine cannot have: a target may say anything, and others count on it."""
    cpu = reading.cores if isinstance(reading, Rate) else reading.cpu
    window = reading.window if isinstance(reading, Rate) else 0.0
    return (
        0 <= cpu < _MOST_CPU
        and 0 <= reading.memory < _MOST_MEMORY
        and 0 < reading.time < _LATEST
        and 0 <= window < _LATEST
    )


def advance(previous: Point | None, reading: Reading) -> Point:
    """The point of a new reading; the previous one if the reading is not newer.

    A first rate counts for its own window, before which nothing was seen. Whatever runs has used
    some time, so no counter made of rates is 0.
    """
    if previous is not None and reading.time <= previous.time:
        return previous

    if isinstance(reading, Total):
        return _counted(previous, reading)

    seconds = reading.window if previous is None else reading.time - previous.time
    before = _LEAST if previous is None else previous.cpu
    return Point(reading.time, before + reading.cores * seconds, reading.cores, reading.memory)


def _counted(previous: Point | None, reading: Total) -> Point:
    cores = None
    if previous is not None and reading.cpu >= previous.cpu:  # else it began anew
        cores = (reading.cpu - previous.cpu) / (reading.time - previous.time)

    return Point(reading.time, reading.cpu, cores, reading.memory)


def since(start: float, reading: Reading) -> Reading | None:
    """The reading as far as it is about what began at `start`; None if it is older than that."""
    if reading.time <= start:
        return None

    if isinstance(reading, Rate) and reading.window > reading.time - start:
        return Rate(reading.time, reading.time - start, reading.cores, reading.memory)

    return reading


def added(points: Collection[Point]) -> Point:
    """Several counters, at least one, as one: where that of a pod begins, if nobody counts it."""
    rate = together(points)
    return Point(
        max(point.time for point in points),
        sum(point.cpu for point in points),
        rate.cores if rate else None,
        sum(point.memory for point in points),
    )


def together(points: Collection[Point]) -> Rate | None:
    """What several things use at once: the sum of the rates that are known; None if none is.

    A sum of rates, not of counters, since things come and go. Its window is empty: what was
    used before is not known of all.
    """
    known = [(point, point.cores) for point in points if point.cores is not None]
    if not known:
        return None

    return Rate(
        max(point.time for point, _cores in known),
        0.0,
        sum(cores for _point, cores in known),
        sum(point.memory for point, _cores in known),
    )
