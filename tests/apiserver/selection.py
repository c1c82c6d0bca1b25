"""Label and field selectors of lists and watches, compiled to one predicate."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.apiserver import resources, status
from tests.apiserver.requests import APIRequest
from vnode.api import objects, selectors
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.objects import Object

Predicate = Callable[[Object], bool]


def of(request: APIRequest, kind: Kind) -> Predicate:
    """Compile the namespace and the selectors of a request; StatusError if they are wrong."""
    try:
        labels = selectors.parse(request.query.get("labelSelector", ""))
    except ConfigError as error:
        raise status.bad_request(f"unable to parse requirement: {error}") from error

    fields = _fields(request.query.get("fieldSelector", ""), kind)
    namespace = request.namespace

    def matches(obj: Object) -> bool:
        return (
            (not namespace or objects.namespace(obj) == namespace)
            and labels.matches(objects.labels(obj))
            and all((_value(obj, path) == value) is equal for path, equal, value in fields)
        )

    return matches


def _fields(text: str, kind: Kind) -> list[tuple[str, bool, str]]:
    """Return the requirements as (path, equal or not, value)."""
    result = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", part)
        if found is None:
            raise status.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")

        path, sign, value = found.groups()
        if path not in resources.field_labels(kind):
            raise status.bad_request(_unknown(path, kind))

        result.append((path, sign != "!=", value))

    return result


def _unknown(path: str, kind: Kind) -> str:
    known = resources.field_labels(kind)
    if resources.is_custom(kind) or resources.has_own_fields(kind):
        return f"field label not supported: {path}"

    return f'"{path}" is not a known field selector: only ' + ", ".join(f'"{k}"' for k in known)


def _value(obj: Object, path: str) -> str:
    """Return the field as text; a boolean that is not set is false."""
    value: Any = obj
    if path == "source":  # of an Event
        path = "source.component"

    for field in path.split("."):
        value = value.get(field) if isinstance(value, dict) else None

    if isinstance(value, bool) or path in ("spec.unschedulable", "spec.hostNetwork"):
        return "true" if value else "false"

    return "" if value is None else str(value)
