"""Makes cumulative counters from readings of two kinds. Pure.

A kubelet counts CPU time from a container's start. The metrics API has only recent rates, so these
are integrated over the time between readings. The difference of two points, divided by the time as
metrics-server does, is the rate that was read.
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
    """A reading of the metrics API: cores over the `window` seconds before `time`, and bytes."""

    time: float
    window: float
    cores: float
    memory: int


@dataclass(frozen=True, slots=True)
class Total:
    """A reading of a kubelet: core-seconds since the start, and bytes."""

    time: float
    cpu: float
    memory: int


Reading: TypeAlias = Rate | Total


@dataclass(frozen=True, slots=True)
class Point:
    """The usage of a container, pod or node by `time`, in Unix seconds of the measuring cluster.

    `cpu` counts core-seconds. `cores` is the recent rate, None until it is known. `memory` is the
    working set in bytes.
    """

    time: float
    cpu: float
    cores: float | None
    memory: int


def is_plausible(reading: Reading) -> bool:
    """Tell whether a machine can have these numbers, since a target may send any."""
    cpu = reading.cores if isinstance(reading, Rate) else reading.cpu
    window = reading.window if isinstance(reading, Rate) else 0.0
    return (
        0 <= cpu < _MOST_CPU
        and 0 <= reading.memory < _MOST_MEMORY
        and 0 < reading.time < _LATEST
        and 0 <= window < _LATEST
    )


def advance(previous: Point | None, reading: Reading) -> Point:
    """Return the point of a new reading; the previous one if the reading is not newer.

    A first rate counts for its own window, before which nothing was read. Whatever runs has used
    some CPU time, so no counter made of rates is 0.
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


def clip(start: float, reading: Reading) -> Reading | None:
    """Limit the window of a reading to the time since `start`; None if the reading is older."""
    if reading.time <= start:
        return None

    if isinstance(reading, Rate) and reading.window > reading.time - start:
        return Rate(reading.time, reading.time - start, reading.cores, reading.memory)

    return reading


def sum_points(points: Collection[Point]) -> Point:
    """Sum counters, at least one: the first point of a pod of which the target has no counter."""
    rate = sum_rates(points)
    return Point(
        max(point.time for point in points),
        sum(point.cpu for point in points),
        rate.cores if rate else None,
        sum(point.memory for point in points),
    )


def sum_rates(points: Collection[Point]) -> Rate | None:
    """Sum the rates that are known; None if none is.

    It sums rates, not counters, since containers and pods come and go. The window is empty: earlier
    usage is not known of all.
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
