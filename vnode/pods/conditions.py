"""Merges conditions, which both sides write: decides which type is whose, and builds patches. Pure.

The kubelet's own types are always the delegate's, and `AWAITS_REPLACEMENT` is the proxy's. Any
other type belongs to whoever wrote it last: controllers of the source set DisruptionTarget (an
eviction) or the condition of a readiness gate on the proxy, those of the target may do the same to
the delegate. What came from the delegate is recorded on the proxy (`keys.FED_BACK_CONDITIONS`, a
digest for each type), in the same request as the condition, so that a condition that differs from
its digest is known to be the source's. The kubelet's types need no record, so most pods have none.

Of what the source has written, the types of readiness gates travel to the delegate, whose kubelet
waits for them. A type that was sent once is the source's as long as the chaperon lives.

All lists of conditions are written as strategic merge patches by type: a condition that somebody
else writes between our read and our write stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from vnode.api import disruptions, keys, objects
from vnode.api.objects import Object, Objects
from vnode.pods import annotation_merge

READY: Final = "Ready"
_SCHEDULED: Final = "PodScheduled"
_KUBELETS: Final = frozenset(
    {
        READY,
        "ContainersReady",
        "Initialized",
        "PodReadyToStartContainers",
        "PodResizePending",
        "PodResizeInProgress",
        "AllContainersRestarting",
    }
)
# Types that never travel down, though a pod may name them as gates: the source does not know them,
# and a target need not believe it.
_RESERVED: Final = _KUBELETS | {_SCHEDULED, disruptions.DISRUPTION_TARGET, keys.AWAITS_REPLACEMENT}
_REMOVED: Final = ""
"""In place of a digest: removed in the source, and not to come back from the target.

No digest, so that the source may set again the very condition that it has removed.
"""
_ESSENCE: Final = ("status", "reason", "message", "lastTransitionTime")
_GENERATION: Final = "observedGeneration"


def by_type(entries: Iterable[Object] | None) -> dict[str, Object]:
    """Return conditions by type; of several of one type the first, as clients read them."""
    found: dict[str, Object] = {}
    for entry in entries or ():
        kept = {k: v for k, v in entry.items() if v is not None and not k.startswith("$")}
        found.setdefault(str(entry.get("type", "")), kept)

    return found


def of(obj: Object) -> dict[str, Object]:
    """Return the conditions of an object by type."""
    return by_type(objects.status(obj).get("conditions"))


def gates(pod: Object) -> list[str]:
    """Return the types that a pod's readiness waits for, besides that of its containers."""
    entries = objects.spec(pod).get("readinessGates") or ()
    return [str(entry.get("conditionType", "")) for entry in entries]


def sendable(pod: Object) -> set[str]:
    """Return the types whose conditions travel from a proxy to its delegate."""
    return set(gates(pod)) - _RESERVED


def essence(entry: Object) -> Object:
    """Return a condition without its type, and without what only makes sense in its own cluster."""
    return {field: entry[field] for field in _ESSENCE if entry.get(field)}


def merged(proxy: Object, chaperon: Object, sent: Object) -> tuple[dict[str, Object], Object]:
    """Return the conditions that a proxy is to have, and the record of the delegate's among them.

    `sent` is what the source sent down, by type.
    """
    ours, theirs, record = of(proxy), of(chaperon), _record(proxy)
    result: dict[str, Object] = {}
    fed: Object = {}
    for type_ in sorted(ours.keys() | theirs.keys() | record.keys()):
        here, there = ours.get(type_), theirs.get(type_)
        if type_ == _SCHEDULED:
            entry = _scheduled(here, there)
        elif type_ in _KUBELETS:
            entry = there
        elif type_ == keys.AWAITS_REPLACEMENT:
            entry = here
        elif _is_sources(type_, here, there, sent, record):
            entry = here
            if here is None and there is not None and type_ in record:
                fed[type_] = _REMOVED
        else:
            entry = there
            if there is not None:
                fed[type_] = _digest(there)

        if entry is not None:
            result[type_] = entry

    return _with_gates(gates(proxy), result), fed


def to_send(proxy: Object, chaperon: Object, sent: Object) -> Object:
    """Return what the record of sent conditions must be, by type; {} for one that was removed."""
    if not (types := sendable(proxy)):
        return sent

    ours, theirs, record = of(proxy), of(chaperon), _record(proxy)
    result = dict(sent)
    for type_ in sorted(types):
        here = ours.get(type_)
        if _is_sources(type_, here, theirs.get(type_), sent, record):
            result[type_] = essence(here or {})

    return result


def patch(known: dict[str, Object], wanted: dict[str, Object]) -> Objects:
    """Build the strategic merge patch of a pod's `conditions`; empty if nothing differs.

    The API server keeps an `observedGeneration` that is left out, so leaving it out is no change.
    """
    changed = [
        {**dict.fromkeys(_lost(known.get(type_, {}), entry)), **entry}
        for type_, entry in wanted.items()
        if not _equals(known.get(type_), entry)
    ]
    gone = [{"$patch": "delete", "type": type_} for type_ in known if type_ not in wanted]
    return [*changed, *gone]


def patched(known: dict[str, Object], entries: Objects) -> Objects:
    """Return the conditions after such a patch."""
    result = dict(known)
    for entry in entries:
        if entry.get("$patch") == "delete":
            result.pop(entry["type"], None)
        else:
            both = {**result.get(entry["type"], {}), **entry}
            result[entry["type"]] = {k: v for k, v in both.items() if v is not None}

    return list(result.values())


def _lost(before: Object, after: Object) -> Iterable[str]:
    return before.keys() - after.keys() - {_GENERATION}


def _equals(before: Object | None, after: Object) -> bool:
    if before is None:
        return False

    return before.get(_GENERATION) == after.get(
        _GENERATION, before.get(_GENERATION)
    ) and _without_generation(before) == _without_generation(after)


def _without_generation(entry: Object) -> Object:
    return {k: v for k, v in entry.items() if k != _GENERATION}


def _scheduled(here: Object | None, there: Object | None) -> Object | None:
    """Return the PodScheduled to have: the proxy's once it is bound, unless the delegate is not.

    The generation in it is the kubelet's to write, as in its own types: a binding has none.
    """
    if here is None or here.get("status") != "True":
        return there

    if there is None:
        return here

    if there.get("status") != "True":
        return there

    return {**here, _GENERATION: there[_GENERATION]} if there.get(_GENERATION) else here


def _is_sources(
    type_: str, here: Object | None, there: Object | None, sent: Object, record: Object
) -> bool:
    """Return whether somebody in the source wrote this condition, or removed it, after us."""
    return type_ in sent or _digest(here) not in (record.get(type_), _digest(there))


def _record(proxy: Object) -> Object:
    return annotation_merge.read(proxy, keys.FED_BACK_CONDITIONS)


def _digest(entry: Object | None) -> str | None:
    """Return a short digest, since an annotation has a bounded size and targets write freely."""
    if entry is None:
        return None

    text = msgspec.json.encode(essence(entry), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:16]


def _with_gates(types: list[str], conditions: dict[str, Object]) -> dict[str, Object]:
    """Return conditions whose Ready heeds the proxy's readiness gates, in the kubelet's words.

    The delegate's kubelet may not know them: the source's admission may have added them after the
    pod was saved, and in a target that runs Admiralty the delegate has none.
    """
    ready = conditions.get(READY)
    if not types or ready is None or ready.get("status") != "True":
        return conditions

    present: dict[str, Any] = {type_: conditions.get(type_) for type_ in types}
    if missing := ", ".join(filter(None, (_unmet(*item) for item in present.items()))):
        reason = {"reason": "ReadinessGatesNotReady", "message": missing}
        ready = {**ready, "status": "False", **reason}

    times = [str((e or {}).get("lastTransitionTime") or "") for e in (ready, *present.values())]
    if latest := max(times):
        ready = {**ready, "lastTransitionTime": latest}

    return {**conditions, READY: ready}


def _unmet(type_: str, entry: Object | None) -> str:
    if entry is None:
        return f'corresponding condition of pod readiness gate "{type_}" does not exist.'

    if (status := entry.get("status")) != "True":
        return f'the status of pod readiness gate "{type_}" is not "True", but {status}'

    return ""
