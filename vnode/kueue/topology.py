"""Reads the topology assignment of a pod set: how many of its pods go into which domain. Pure.

Kueue writes it where it schedules by topology. Values of labels that many domains share are written
once, or in parts: see its API, `TopologyAssignment` of v1beta2.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

MOST_DOMAINS = 1000
"""Of which a pod set is read: virtual nodes are few, and the list may be huge."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes with these labels, and how many pods go there."""

    labels: dict[str, str]
    count: int


class _Individual(msgspec.Struct):
    roots: list[str]
    prefix: str = ""
    suffix: str = ""


class _LevelValues(msgspec.Struct):
    universal: str | None = None
    individual: _Individual | None = None

    def value(self, place: int) -> str:
        if self.individual is None:
            return self.universal or ""

        return self.individual.prefix + self.individual.roots[place] + self.individual.suffix


class _PodCounts(msgspec.Struct):
    universal: int | None = None
    individual: list[int] | None = None

    def value(self, place: int) -> int:
        return self.universal or 0 if self.individual is None else self.individual[place]


class _Slice(msgspec.Struct, rename="camel"):
    domain_count: int
    values_per_level: list[_LevelValues]
    pod_counts: _PodCounts


class _Assignment(msgspec.Struct):
    levels: list[str]
    slices: list[_Slice]


def domains(assignment: object) -> tuple[Domain, ...]:
    """Return the domains of an assignment; () if there is none, or it cannot be read."""
    try:
        read = msgspec.convert(assignment, _Assignment)
        found = [
            Domain(
                {
                    level: values.value(place)
                    for level, values in zip(read.levels, each.values_per_level, strict=True)
                },
                each.pod_counts.value(place),
            )
            for each in read.slices
            for place in range(min(each.domain_count, MOST_DOMAINS))
        ]
    except (msgspec.ValidationError, IndexError, ValueError):
        return ()

    return tuple(found[:MOST_DOMAINS])
