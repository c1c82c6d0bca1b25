"""Decides whether objects of one version's CRDs are objects of another's. Pure.

Both are given as `wire.listed` writes them. What an API server has stored must still be valid with
the CRDs of the other version, and nothing of it may be dropped: then any agent can change it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

Facts = dict[str, Any]
Crds = dict[str, dict[str, Facts]]

_UPPER: Final = ("maximum", "maxItems", "maxLength", "maxProperties")
_LOWER: Final = ("minimum", "minItems", "minLength", "minProperties")
_SAME: Final = (
    *("type", "format", "nullable", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
    *("x-kubernetes-map-type", "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource"),
)
_NOT_NEW: Final = ("pattern", "oneOf", "anyOf", "allOf", "not", "exclusiveMinimum")
_KEEPS: Final = "x-kubernetes-preserve-unknown-fields"


def crds(listed: str) -> Crds:
    """Return the facts of each field, by CRD and version, then by path."""
    found: Crds = {}
    for line in listed.splitlines():
        if line.startswith("crd "):
            _crd, name, version, scope, *states = line.split()
            fields = found.setdefault(f"{name} {version}", {})
            fields[""] = {"scope": scope, "states": states}
        elif line.startswith("  "):
            path, _space, facts = line.strip().partition(" ")
            fields[path] = json.loads(facts)

    return found


def breaks(stored: Crds, read: Crds) -> Iterator[str]:
    """Yield what objects of `stored` may have that CRDs `read` refuse, or drop."""
    for crd, fields in stored.items():
        if crd not in read:
            yield f"{crd}: is gone"
            continue

        for path, facts in fields.items():
            where = f"{crd} {path}"
            if path in read[crd]:
                yield from (f"{where}: {what}" for what in _of_field(facts, read[crd][path]))
            elif not _is_kept(read[crd], path):
                yield f"{where}: is dropped"

        new = read[crd].keys() - fields.keys()
        for path in sorted(path for path in new if read[crd][path].get("required")):
            if path.rpartition(".")[0] in fields:
                yield f"{crd} {path}: is required, and stored objects lack it"


def _of_field(old: Facts, new: Facts) -> Iterator[str]:
    for state in set(old.get("states", ())) - set(new.get("states", ())):
        yield f"is no longer {state}"

    other = [fact for fact in ("scope", *_SAME) if old.get(fact) != new.get(fact)]
    other += [fact for fact in _NOT_NEW if fact in new and old.get(fact) != new[fact]]
    for fact in other:
        yield f"{fact} {old.get(fact)} is {new.get(fact)}"

    if new.get("required") and not old.get("required"):
        yield "is required"

    if old.get(_KEEPS) and not new.get(_KEEPS):
        yield "keeps unknown fields no more"

    if "enum" in new and (lost := [v for v in old.get("enum", ["..."]) if v not in new["enum"]]):
        yield f"does not take {', '.join(map(str, lost))}"

    for rule in sorted({*new.get("rules", ())} - {*old.get("rules", ())}):
        yield f"has the new rule {rule}"

    yield from _bounds(old, new)


def _bounds(old: Facts, new: Facts) -> Iterator[str]:
    for fact in _UPPER:
        if fact in new and old.get(fact, float("inf")) > new[fact]:
            yield f"{fact} {old.get(fact)} is {new[fact]}"

    for fact in _LOWER:
        if fact in new and old.get(fact, float("-inf")) < new[fact]:
            yield f"{fact} {old.get(fact)} is {new[fact]}"


def _is_kept(fields: Mapping[str, Facts], path: str) -> bool:
    while path:
        path = path.rpartition(".")[0]
        if fields.get(path, {}).get(_KEEPS):
            return True

    return False
