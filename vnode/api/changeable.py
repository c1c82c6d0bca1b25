"""The fields of a pod's spec that may change while it runs, and that a delegate then takes over.

They are images, resources (in-place resize), a deadline, and ephemeral containers that are added. A
pod's tolerations may grow too, but those of a proxy pod are about virtual nodes. Both sides of a
link keep this much of a spec and compare `view`s of it, so that a change is found without a
request.
"""

from __future__ import annotations

from typing import Final

from vnode.api.objects import Object

CONTAINERS: Final = ("containers", "initContainers")
EPHEMERAL: Final = "ephemeralContainers"
DEADLINE: Final = "activeDeadlineSeconds"
_CHANGEABLE: Final = ("image", "resources")
_DEPTH: Final = 3  # of maps in resources; a patch may be of another cluster, and have any number
_KEPT: Final = frozenset({"name", "restartPolicy", *_CHANGEABLE})


def trim(spec: Object) -> Object:
    """Return what `view` reads, and which init containers are sidecars, as a PodSpec."""
    kept: Object = {field: spec[field] for field in (DEADLINE, "resources") if field in spec}
    for field in CONTAINERS:
        if entries := spec.get(field):
            kept[field] = [{k: v for k, v in entry.items() if k in _KEPT} for entry in entries]

    if entries := spec.get(EPHEMERAL):
        kept[EPHEMERAL] = [{"name": entry.get("name")} for entry in entries]

    return kept


def view(spec: Object) -> Object:
    """Return the changeable part as nested maps by container name, so that two can be compared.

    Fields that are empty are absent. Ephemeral containers are names: they can be added only.
    """
    found: Object = {}
    for field in CONTAINERS:
        for entry in spec.get(field) or ():
            _add(found, "images", field, entry["name"], entry.get("image"))
            _add(found, "resources", field, entry["name"], entry.get("resources"))

    if resources := spec.get("resources"):
        found.setdefault("resources", {})["pod"] = resources

    if (deadline := spec.get(DEADLINE)) is not None:
        found[DEADLINE] = deadline

    if names := spec.get(EPHEMERAL):
        found[EPHEMERAL] = {entry["name"]: True for entry in names}

    return found


def _add(found: Object, what: str, field: str, name: str, value: object) -> None:
    if value:
        found.setdefault(what, {}).setdefault(field, {})[name] = value


def patched(spec: Object, patch: Object) -> Object:
    """Return `spec` with a merge patch of its `view` applied; what the patch names and the spec
    lacks is skipped, as the patch may be of another cluster."""
    result = dict(spec)
    for what, field in (("images", "image"), ("resources", "resources")):
        if what not in patch:
            continue

        parts = patch[what]
        for containers in CONTAINERS:
            changed = _inner(parts, containers)
            if changed != {} and containers in result:
                entries = result[containers] or ()
                result[containers] = [_patched_entry(each, field, changed) for each in entries]

        if what == "resources" and (pod := _inner(parts, "pod")) != {}:
            _put(result, "resources", _merged(result.get("resources"), pod))

    if DEADLINE in patch:
        _put(result, DEADLINE, patch[DEADLINE])

    return result


def _inner(patch: object, field: str) -> object:
    """Return the patch of a field: None removes it, an empty one leaves it as it is."""
    if not isinstance(patch, dict):
        return None

    return patch.get(field, {})


def _patched_entry(entry: Object, field: str, changed: object) -> Object:
    inner = _inner(changed, entry["name"])
    if inner == {}:
        return entry

    result = dict(entry)
    _put(result, field, _merged(entry.get(field), inner))
    return result


def _merged(value: object, patch: object, depth: int = _DEPTH) -> object:
    if not isinstance(patch, dict) or not depth:
        return patch

    merged = dict(value) if isinstance(value, dict) else {}
    for field, inner in patch.items():
        _put(merged, field, _merged(merged.get(field), inner, depth - 1))

    return merged


def _put(holder: Object, field: str, value: object) -> None:
    """Set a field, or remove it as a merge patch does."""
    if value is None:
        holder.pop(field, None)
    else:
        holder[field] = value


def overlaid(spec: Object, live: Object) -> Object:
    """Return `spec` with the changeable part of `live`; containers missing in `live` stay as they
    are."""
    result = dict(spec)
    for field in CONTAINERS:
        if field in spec:
            now = {entry["name"]: entry for entry in live.get(field) or ()}
            result[field] = [_container(entry, now.get(entry["name"])) for entry in spec[field]]

    for field in (DEADLINE, "resources", EPHEMERAL):
        if field in live:
            result[field] = live[field]

    return result


def _container(entry: Object, live: Object | None) -> Object:
    return entry if live is None else {**entry, **{k: live[k] for k in _CHANGEABLE if k in live}}
