"""What an API server makes of a strategic merge patch for a pod's status, where tests need it."""

from __future__ import annotations

from typing import Any

from vnode.api.objects import Object

_KEYS = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip", "resourceClaimStatuses": "name"}


def apply(pod: Object, patch: Object) -> None:
    """Change the pod as the patch says: its annotations and its status."""
    if not patch:
        return

    annotations = {
        **pod["metadata"].get("annotations", {}),
        **patch["metadata"].get("annotations", {}),
    }
    pod["metadata"]["annotations"] = _present(annotations)
    old = pod["status"]
    pod["status"] = _map(old, patch["status"])
    _keep_generations(pod["status"], old)


def _map(old: Object, patch: Object) -> Object:
    if patch.get("$patch") == "replace":
        return {k: v for k, v in patch.items() if k != "$patch"}

    result = dict(old)
    for field, value in patch.items():
        assert not field.startswith("$"), "no directive of a target reaches an API server"
        before = result.get(field)
        if isinstance(value, dict):
            result[field] = _map(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, list) and field in _KEYS:
            result[field] = _list(before if isinstance(before, list) else [], value, _KEYS[field])
        else:
            result[field] = value

    return _present(result)


def _list(old: list[Any], patch: list[Any], key: str) -> list[Any]:
    plain = [e for e in patch if not (isinstance(e, dict) and "$patch" in e)]
    if {"$patch": "replace"} in patch:
        return plain

    gone = [e[key] for e in patch if e.get("$patch") == "delete"]
    result = {entry[key]: entry for entry in reversed(old) if entry[key] not in gone}
    for entry in plain:
        result[entry[key]] = _present({**result.get(entry[key], {}), **entry})

    return list(result.values())


def _keep_generations(status: Object, old: Object) -> None:
    """Keep the `observedGeneration`s of a pod, which leaving them out does not clear."""
    if "observedGeneration" in old:
        status.setdefault("observedGeneration", old["observedGeneration"])

    before = {entry["type"]: entry for entry in reversed(old.get("conditions") or [])}
    for entry in status.get("conditions") or ():
        if number := before.get(entry["type"], {}).get("observedGeneration"):
            entry.setdefault("observedGeneration", number)


def _present(fields: Object) -> Object:
    return {k: v for k, v in fields.items() if v is not None}
