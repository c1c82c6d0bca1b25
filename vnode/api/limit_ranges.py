"""Applies the LimitRanges of a namespace to a new pod, as the API server there does. Pure.

First each LimitRange gives containers the limits and requests that they lack; then the pod is held
to the minimums, maximums and ratios. It is a guess of what a target's API server says: policies and
webhooks there may change the pod in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vnode.api import objects, quantities, resources
from vnode.api.objects import Object
from vnode.api.resources import LIMITS, REQUESTS

CONTAINER: Final = "Container"
POD: Final = "Pod"

_LISTS: Final = ("containers", "initContainers")
_FIELDS: Final = ("default", "defaultRequest", "min", "max", "maxLimitRequestRatio")

Nanos = Mapping[str, int]
"""Amounts in nano-units, by the name of the resource."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one LimitRange says about each container, or about a pod."""

    type: str
    defaults: Mapping[str, str]
    default_requests: Mapping[str, str]
    least: Nanos
    most: Nanos
    ratios: Nanos

    @property
    def size(self) -> int:
        """How many amounts a container is held to, or given."""
        given = (self.defaults, self.default_requests, self.least, self.most, self.ratios)
        return 1 + sum(map(len, given))

    def violations(self, requests: Nanos, limits: Nanos) -> Iterator[str]:
        """Yield what is wrong with the amounts of a container, or of a pod."""
        yield from self._too_little(requests, limits)
        yield from self._too_much(requests, limits)
        yield from self._out_of_ratio(requests, limits)

    def _too_little(self, requests: Nanos, limits: Nanos) -> Iterator[str]:
        for name, least in self.least.items():
            head = f"minimum {name} usage per {self.type} is {_text(name, least)}"
            if name not in requests:
                yield f"{head}, but no request is specified"
            elif requests[name] < least:
                yield f"{head}, but request is {_text(name, requests[name])}"
            elif limits.get(name, least) < least:
                yield f"{head}, but limit is {_text(name, limits[name])}"

    def _too_much(self, requests: Nanos, limits: Nanos) -> Iterator[str]:
        for name, most in self.most.items():
            head = f"maximum {name} usage per {self.type} is {_text(name, most)}"
            if name not in limits:
                yield f"{head}, but no limit is specified"
            elif limits[name] > most:
                yield f"{head}, but limit is {_text(name, limits[name])}"
            elif requests.get(name, 0) > most:
                yield f"{head}, but request is {_text(name, requests[name])}"

    def _out_of_ratio(self, requests: Nanos, limits: Nanos) -> Iterator[str]:
        for name, ratio in self.ratios.items():
            request, limit = requests.get(name, 0), limits.get(name, 0)
            head = (
                f"{name} max limit to request ratio per {self.type} is "
                f"{quantities.format_nano(ratio)}"
            )
            if not request:
                yield f"{head}, but no request is specified or request is 0"
            elif not limit:
                yield f"{head}, but no limit is specified or limit is 0"
            elif limit * quantities.NANO > ratio * request:
                yield f"{head}, but provided ratio is {limit / request:f}"


@dataclass(frozen=True, slots=True)
class LimitRange:
    """A LimitRange of a namespace."""

    name: str
    limits: tuple[Limits, ...]

    @property
    def size(self) -> int:
        """How much there is to look at for each container."""
        return sum(limits.size for limits in self.limits)

    def violations(self, spec: Object) -> list[str]:
        """Return what the API server would refuse a pod for, whose defaults were applied."""
        found: list[str] = []
        for limits in self.limits:
            for requested, limited in _amounts(limits.type, spec):
                found += limits.violations(requested, limited)

        return list(dict.fromkeys(found))


def parse(obj: Object) -> LimitRange:
    """Read a LimitRange. ConfigError for a quantity that cannot be read."""
    return LimitRange(objects.name(obj), tuple(map(_limits, objects.spec(obj).get("limits") or ())))


def apply_defaults(spec: Object, ranges: Iterable[LimitRange]) -> Object:
    """Return a pod's spec with what its containers lack; the first range that has it decides."""
    for limits in (limits for each in ranges for limits in each.limits):
        if limits.type == CONTAINER and (limits.defaults or limits.default_requests):
            filled = {
                field: [_fill(container, limits) for container in spec.get(field) or ()]
                for field in _LISTS
                if spec.get(field)
            }
            spec = {**spec, **filled}

    return spec


def _fill(container: Object, limits: Limits) -> Object:
    given = container.get("resources") or {}
    filled = {
        LIMITS: {**limits.defaults, **(given.get(LIMITS) or {})},
        REQUESTS: {**limits.default_requests, **(given.get(REQUESTS) or {})},
    }
    return {**container, "resources": {**given, **filled}}


def _amounts(type_: str, spec: Object) -> Iterator[tuple[Nanos, Nanos]]:
    """Yield the requests and limits that are held to limits of that type."""
    if type_ == POD:
        bare = {field: value for field, value in spec.items() if field != "overhead"}
        yield resources.in_nano(bare, REQUESTS), resources.in_nano(bare, LIMITS)
    elif type_ == CONTAINER:
        for container in (c for field in _LISTS for c in spec.get(field) or ()):
            given = container.get("resources") or {}
            yield _nanos(given.get(REQUESTS)), _nanos(given.get(LIMITS))


def _limits(item: Object) -> Limits:
    defaults, default_requests, *bounds = (item.get(field) or {} for field in _FIELDS)
    for listed in (defaults, default_requests):
        _nanos(listed)  # to be sure that they can be read

    return Limits(str(item.get("type")), defaults, default_requests, *map(_nanos, bounds))


def _nanos(listed: Mapping[str, Any] | None) -> Nanos:
    return {name: quantities.nano(amount) for name, amount in (listed or {}).items()}


def _text(name: str, amount: int) -> str:
    return resources.format_nano(name, amount)


def in_order(ranges: Mapping[str, LimitRange]) -> Sequence[LimitRange]:
    """Return the LimitRanges of a namespace by name; API servers take them in any order."""
    return [ranges[name] for name in sorted(ranges)]
