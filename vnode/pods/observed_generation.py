"""Translates generations: which one of a proxy its delegate has observed. Pure.

A pod's status names the `metadata.generation` that a kubelet has seen, and each condition the one
that it was set upon. The numbers of a delegate mean nothing elsewhere, so each side translates them
for the next: the target's agent into generations of the chaperon, the source's agent into those of
the proxy. A number is passed on only if what it counts is the newest, and all that was asked for
has been done; else the last one stays, which is too low at worst.
"""

from __future__ import annotations

from typing import Any, Final

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.pods import changes, conditions

FIELD: Final = "observedGeneration"


def by_chaperon(chaperon: Object, pod: Object) -> Object:
    """Return the status of a delegate, with generations of its chaperon."""
    status = objects.status(pod)
    if not _counts(status):
        return status

    done = objects.annotations(pod).get(keys.SENT) == objects.annotations(chaperon).get(keys.SENT)
    own = _generation(pod) if done else None
    return _translated(status, objects.status(chaperon), own, _generation(chaperon))


def by_proxy(proxy: Object, chaperon: Object, status: Object) -> Object:
    """Return a chaperon's status, with generations of the proxy.

    A chaperon that agrees with its proxy is the newest; a target that runs Admiralty reports the
    delegate's numbers, which are the chaperon's as long as neither was ever changed.
    """
    if not _counts(status):
        return status

    own = _generation(chaperon) if changes.agrees(proxy, chaperon) else None
    return _translated(status, objects.status(proxy), own, _generation(proxy))


def _generation(obj: Object) -> Any:
    return objects.metadata(obj).get("generation")


def _counts(status: Object) -> bool:
    entries = status.get("conditions") or ()
    return FIELD in status or any(FIELD in entry for entry in entries)


def _translated(status: Object, last: Object, newest: Any, becomes: Any) -> Object:
    known = conditions.by_type(last.get("conditions"))
    result = _counted(status, last, newest, becomes)
    if "conditions" in status:
        result["conditions"] = [
            _counted(entry, known.get(str(entry.get("type", "")), {}), newest, becomes)
            for entry in status["conditions"] or ()
        ]

    return result


def _counted(entry: Object, last: Object, newest: Any, becomes: Any) -> Object:
    kept = {k: v for k, v in entry.items() if k != FIELD}
    if newest and becomes and entry.get(FIELD) == newest:
        return {**kept, FIELD: becomes}

    return {**kept, FIELD: last[FIELD]} if FIELD in entry and FIELD in last else kept
