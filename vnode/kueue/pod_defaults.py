"""Sets in the template of pods what the API server sets in a pod that is made of it. Pure.

A template is kept as it was written. Most people ask for GPUs by limits alone, and only a pod has
the requests that follow of them.
"""

from __future__ import annotations

from typing import Final

from vnode.api.objects import Object
from vnode.api.resources import LIMITS, REQUESTS

_CONTAINERS: Final = ("containers", "initContainers")


def completed(spec: Object) -> Object:
    """Return the spec of a pod whose requests are what is limited, where it has none."""
    found = _requested(spec)
    for field in _CONTAINERS:
        if spec.get(field):
            found[field] = [_requested(container) for container in spec[field]]

    return found


def _requested(of: Object) -> Object:
    """Return a container, or a spec with resources of its own, with the requests of its limits."""
    stated = of.get("resources") or {}
    if not stated.get(LIMITS):
        return dict(of)

    requests = {**stated[LIMITS], **(stated.get(REQUESTS) or {})}
    return {**of, "resources": {**stated, REQUESTS: requests}}
