"""Computes with amounts of resources: what a pod requests, what a target offers, what is free.

Amounts are plain dicts of resource name to integer, in kube-scheduler's units: CPU in millicores,
everything else in whole units (bytes, pods, devices). A name that is absent counts as 0. Functions
return new dicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final, TypeAlias

from vnode.api import objects, quantities
from vnode.api.objects import Object

Resources: TypeAlias = dict[str, int]
"""Resource name -> amount in the units above."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
REQUESTS: Final = "requests"
LIMITS: Final = "limits"

MOST: Final = 250
"""Resources that a pod may request: each is compared with what each target has; pods have some."""

_CPU_UNIT: Final = quantities.NANO // 1000
_POD_LEVEL: Final = frozenset({CPU, MEMORY})
_HUGE_PAGES: Final = "hugepages-"
_BINARY: Final = frozenset({MEMORY, "ephemeral-storage", "storage"})


def parse(listed: Mapping[str, str | int | float] | None) -> Resources:
    """Parse a ResourceList of the API. Raises ConfigError for a quantity that cannot be read."""
    return _scaled({name: quantities.nano(amount) for name, amount in (listed or {}).items()})


def format_list(amounts: Mapping[str, int]) -> dict[str, str]:
    """Format a ResourceList of the API, quantities in their canonical form; reverses `parse`."""
    return {name: format_amount(name, amount) for name, amount in amounts.items()}


def format_amount(name: str, amount: int) -> str:
    """Format one amount as a quantity: CPU like `1500m` or `4`, bytes like `16Gi`."""
    if name == CPU:
        return quantities.from_milli(amount)

    return quantities.from_value(amount, binary=name in _BINARY or name.startswith(_HUGE_PAGES))


def format_nano(name: str, amount: int) -> str:
    """Format nano-units as `format_amount` does units; the name may be a quota's: `limits.cpu`."""
    bare = name.removeprefix("requests.").removeprefix("limits.")
    binary = bare in _BINARY or bare.startswith(_HUGE_PAGES)
    return quantities.format_nano(amount, binary=binary)


def is_extended(name: str) -> bool:
    """Tell whether a name is that of an extended resource, such as a device."""
    return "/" in name and "kubernetes.io/" not in name


def pod_requests(pod: Object) -> Resources:
    """Return what the scheduler of a cluster reserves for the pod; `pods` is always 1.

    Containers add up. An init container runs beside the sidecars (restartable init containers)
    before it, so a larger such moment counts instead. Requests for the pod as a whole replace those
    of its containers, and overhead is added. (The resizing of running pods is ignored: the question
    is whether a new pod fits.) Of more than MOST resources so many are returned, and one more.
    """
    found = in_nano(objects.spec(pod), REQUESTS)
    if len(found) >= MOST:
        common = {name: found[name] for name in (CPU, MEMORY) if name in found}
        found = common | dict(islice(found.items(), MOST - len(common)))

    requests = _scaled(found)
    requests[PODS] = 1
    return requests


def in_nano(spec: Object, field: str) -> dict[str, int]:
    """Return the REQUESTS of a whole pod, or its LIMITS, exactly: in nano-units.

    Only what has a limit has its overhead added to that.
    """
    total = _containers(spec, field)
    for name, amount in ((spec.get("resources") or {}).get(field) or {}).items():
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES):
            total[name] = quantities.nano(amount)

    overhead = spec.get("overhead") or {}
    if field == LIMITS:
        overhead = {name: amount for name, amount in overhead.items() if name in total}

    _accumulate(total, overhead)
    return total


def add(left: Mapping[str, int], right: Mapping[str, int]) -> Resources:
    """Return the sum."""
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + amount

    return total


def subtract(left: Mapping[str, int], right: Mapping[str, int]) -> Resources:
    """Return the difference; it may be negative, and has only the names of `left`."""
    return {name: amount - right.get(name, 0) for name, amount in left.items()}


def largest(lists: Iterable[Mapping[str, int]]) -> Resources:
    """Return for each resource the greatest amount in any one of the lists."""
    best: Resources = {}
    for amounts in lists:
        for name, amount in amounts.items():
            if name not in best or amount > best[name]:
                best[name] = amount

    return best


def insufficient(requests: Mapping[str, int], free: Mapping[str, int]) -> list[str]:
    """Return the names of which too little is free, sorted; a request for 0 always fits."""
    short = [name for name, amount in requests.items() if amount > 0 and amount > free.get(name, 0)]
    return sorted(short) if len(short) > 1 else short


def times(wanted: Mapping[str, int], free: Mapping[str, int]) -> int | None:
    """Return how many times all that is wanted is free; None if nothing is wanted.

    Amounts that are wanted are positive.
    """
    return min((free.get(name, 0) // amount for name, amount in wanted.items()), default=None)


def _containers(spec: Object, field: str) -> dict[str, int]:
    """Sum nano-units over all containers and init containers."""
    total: dict[str, int] = {}
    for container in spec.get("containers") or ():
        _accumulate(total, _listed(container, field))

    peak = _peak(spec, field, total)
    return largest((total, peak)) if peak else total


def _peak(spec: Object, field: str, total: dict[str, int]) -> dict[str, int]:
    """Return the most that init containers take at any moment; sidecars are added to the total.

    Each looks at its own resources only: a pod may have thousands of both.
    """
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        listed, moment = _listed(container, field) or {}, sidecars
        if container.get("restartPolicy") == "Always":
            _accumulate(total, listed)
            _accumulate(sidecars, listed)
        else:
            moment = {name: sidecars.get(name, 0) for name in listed}
            _accumulate(moment, listed)

        for name in listed:
            peak[name] = max(peak.get(name, moment[name]), moment[name])

    return peak


def _listed(container: Object, field: str) -> Mapping[str, str | int | float] | None:
    return (container.get("resources") or {}).get(field)


def _accumulate(total: dict[str, int], listed: Mapping[str, str | int | float] | None) -> None:
    for name, amount in (listed or {}).items():
        total[name] = total.get(name, 0) + quantities.nano(amount)


def _scaled(nanos: Mapping[str, int]) -> Resources:
    return {
        name: quantities.round_away(amount, _CPU_UNIT if name == CPU else quantities.NANO)
        for name, amount in nanos.items()
    }
