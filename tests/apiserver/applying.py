"""Server-side apply: which manager has applied which fields, and what a next apply makes of them.

Simplified: only applies make owners. A field that somebody wrote by another request has none, so
that an apply takes it without a conflict, and gives it up by leaving it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from tests.apiserver import copying, resources, status
from vnode.api import objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object

_Step: TypeAlias = str | tuple[str, Any]
_Path: TypeAlias = tuple[_Step, ...]
"""From the top to a field; an entry of a list is a pair of its merge key and that one's value."""

_IDENTITY = frozenset({"apiVersion", "kind"})
_NAMES = frozenset({"name", "namespace", "uid", "resourceVersion"})


class FieldManagers:
    """What each manager has applied, by the UID of the object."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, frozenset[_Path]]] = {}

    def apply(self, kind: Kind, old: Object, body: Object, manager: str, *, force: bool) -> Object:
        """Build the next state of an object; StatusError if another's field would change."""
        wanted = dict(_leaves(_own_part(body)))
        managers = self._owned.get(objects.uid(old), {})
        present = dict(_leaves(old))
        for other, paths in managers.items():
            if other == manager or force:
                continue

            for path in paths & wanted.keys():
                if present.get(path) != wanted[path]:
                    field = ".".join(str(step) for step in path)
                    why = f'Apply failed with 1 conflict: conflict with "{other}": .{field}'
                    raise status.conflict(kind, objects.name(old), why)

        result = copying.deep(old)
        others = {path for name, paths in managers.items() if name != manager for path in paths}
        for path in managers.get(manager, frozenset()) - wanted.keys() - others:
            _remove(result, path)

        next_: Object = _merge(result, body)
        return next_

    def record(self, uid: str, body: Object, manager: str) -> None:
        """Remember what a manager has applied to the object of that UID."""
        applied = frozenset(path for path, _value in _leaves(_own_part(body)))
        self._owned.setdefault(uid, {})[manager] = applied


def _own_part(body: Object) -> Object:
    """Leave out of the body what tells which object it is."""
    metadata = {k: v for k, v in objects.metadata(body).items() if k not in _NAMES}
    return {**{k: v for k, v in body.items() if k not in _IDENTITY}, "metadata": metadata}


def _leaves(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    """Yield all fields that have no further fields in them."""
    if isinstance(value, dict) and value:
        for field, part in value.items():
            yield from _leaves(part, (*path, field))
    elif (keyed := _keyed(value, path)) is not None:
        for step, entry in keyed.items():
            yield from _leaves(entry, (*path, step))
    else:
        yield path, value


def _keyed(value: Any, path: _Path) -> dict[tuple[str, Any], Any] | None:
    """Return the entries of a list that is merged, by step; None for anything else."""
    if not isinstance(value, list) or not path or not isinstance(path[-1], str):
        return None

    if path[-1] in resources.SETS:
        return {("", entry): entry for entry in value}

    key = resources.merge_key(path[-1], value)
    if key is None or not all(isinstance(entry, dict) and key in entry for entry in value):
        return None

    return {(key, entry[key]): entry for entry in value}


def _remove(value: Any, path: _Path) -> None:
    """Remove a field, and what is empty without it."""
    step, *rest = path
    if isinstance(step, str):
        if not isinstance(value, dict) or step not in value:
            return

        if rest:
            _remove(value[step], tuple(rest))

        if not rest or value[step] in ({}, []):
            del value[step]

        return

    key, wanted = step
    if not isinstance(value, list):
        return

    for entry in list(value):
        if (entry if not key else entry.get(key)) == wanted:
            if len(rest) and rest != [key]:
                _remove(entry, tuple(rest))
            else:
                value.remove(entry)


def _merge(old: Any, new: Any, path: _Path = ()) -> Any:
    if isinstance(new, dict):
        result = dict(old) if isinstance(old, dict) else {}
        for field, value in new.items():
            result[field] = _merge(result.get(field), value, (*path, field))

        return result

    added = _keyed(new, path)
    if added is None:
        return new

    before = _keyed(old or [], path) or {}
    merged = {
        step: _merge(before.get(step), added[step]) if step in added else entry
        for step, entry in {**before, **added}.items()
    }
    return list(merged.values())
