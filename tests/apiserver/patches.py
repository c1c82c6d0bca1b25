"""JSON merge patches and strategic merge patches. Pure: the originals stay as they are."""

from __future__ import annotations

from typing import Any

from tests.apiserver import resources, status
from vnode.api.objects import Object


def merge(old: Any, patch: Any) -> Any:
    """Apply an RFC 7386 merge patch."""
    if not isinstance(patch, dict):
        return patch

    result = dict(old) if isinstance(old, dict) else {}
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = merge(result.get(field), value)

    return result


def strategic(old: Object, patch: Object) -> Object:
    """Apply a strategic merge patch, with the merge keys of the built-in kinds."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {field: value for field, value in patch.items() if field != "$patch"}

    if directive == "delete":
        return {}

    result = dict(old)
    for field, value in patch.items():
        if field == "$patch" or field.startswith(("$setElementOrder/", "$retainKeys")):
            continue

        if field.startswith("$deleteFromPrimitiveList/"):
            name = field.partition("/")[2]
            result[name] = [entry for entry in result.get(name) or () if entry not in value]
        elif field.startswith("$"):
            raise status.bad_request(f"unknown patch directive: {field}")
        elif value is None:
            result.pop(field, None)
        elif field in result:
            result[field] = _strategic_value(field, result[field], value)
        elif (new := _without_directives(value)) is not None:
            result[field] = new

    return result


def _without_directives(value: Any) -> Any:
    """Return a new value as the API server takes it: maps with a directive `$patch` are dropped."""
    if isinstance(value, dict):
        if "$patch" in value:
            return None

        inner = {k: _without_directives(v) for k, v in value.items() if not k.startswith("$")}
        return {k: v for k, v in inner.items() if v is not None}

    if isinstance(value, list):
        return [v for entry in value if (v := _without_directives(entry)) is not None]

    return value


def _strategic_value(field: str, old: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return strategic(old if isinstance(old, dict) else {}, value)

    if not isinstance(value, list):
        return value

    before = old if isinstance(old, list) else []
    if field in resources.SETS:
        return before + [entry for entry in value if entry not in before]

    key = resources.merge_key(field, before + value)
    return _strategic_list(before, value, key) if key else value


def _strategic_list(old: list[Any], patch: list[Any], key: str) -> list[Any]:
    """Merge entry by entry: the old ones keep their places, new ones come last."""
    plain = [entry for entry in patch if "$patch" not in entry or entry["$patch"] == "merge"]
    if any(entry.get("$patch") == "replace" for entry in patch):
        return plain

    result = list(old)
    for entry in patch:
        if key not in entry:
            raise status.bad_request(f"map: {entry} does not contain declared merge key: {key}")

        places = [i for i, present in enumerate(result) if present[key] == entry[key]]
        if entry.get("$patch") == "delete":
            result = [present for present in result if present[key] != entry[key]]
        elif places:
            result[places[0]] = strategic(result[places[0]], entry)
        else:
            result.append(strategic({}, entry))

    return result
