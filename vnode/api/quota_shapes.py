"""Checks and trims the ResourceQuotas and LimitRanges of a target, whose API server may lie.

Like the checks of `vnode.api.shapes`; what passes can be parsed, too. What is kept of one is small:
the rest is left to the API server of the target, which decides in the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from vnode.api import limit_ranges, names, objects, resource_quotas
from vnode.api.errors import ConfigError
from vnode.api.objects import Object

MOST_NAMES: Final = 100
"""Resources of a quota or a limit that are read; quotas have a dozen."""
MOST_LIMITS: Final = 200
"""Amounts of a LimitRange that are read, of all its items: each container is held to each."""
MOST_ITEMS: Final = 20
"""Scopes of a quota, or items of a LimitRange, that are read."""
_NAME_LENGTH: Final = 320  # characters: a prefix, a DNS name and a label

_Amounts = dict[str, str | int | float]


class _RulesMetadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class _QuotaScope(msgspec.Struct, rename="camel"):
    scope_name: str
    operator: str
    values: list[str] | None = None


class _ScopeSelector(msgspec.Struct, rename="camel"):
    match_expressions: list[_QuotaScope] | None = None


class _QuotaSpec(msgspec.Struct, rename="camel"):
    hard: _Amounts | None = None
    scopes: list[str] | None = None
    scope_selector: _ScopeSelector | None = None


class _QuotaStatus(msgspec.Struct):
    hard: _Amounts | None = None
    used: _Amounts | None = None


class _QuotaShape(msgspec.Struct):
    metadata: _RulesMetadata
    spec: _QuotaSpec | None = None
    status: _QuotaStatus | None = None


class _LimitShape(msgspec.Struct, rename="camel"):
    type: str
    default: _Amounts | None = None
    default_request: _Amounts | None = None
    min: _Amounts | None = None
    max: _Amounts | None = None
    max_limit_request_ratio: _Amounts | None = None


class _LimitRangeSpec(msgspec.Struct):
    limits: list[_LimitShape] | None = None


class _LimitRangeShape(msgspec.Struct):
    metadata: _RulesMetadata
    spec: _LimitRangeSpec | None = None


def trim_quota(quota: Object) -> Object:
    """Keep what `resource_quotas.parse` reads, of each list the first."""
    spec, status = objects.spec(quota), objects.status(quota)
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    kept: Object = {
        "hard": _first(spec.get("hard")),
        "scopes": list(itertools.islice(spec.get("scopes") or (), MOST_ITEMS)),
        "scopeSelector": {"matchExpressions": list(itertools.islice(expressions, MOST_ITEMS))},
    }
    hard = _first(status.get("hard"))
    used = {name: amount for name, amount in (status.get("used") or {}).items() if name in hard}
    return {"metadata": _metadata(quota), "spec": kept, "status": {"hard": hard, "used": used}}


def trim_limit_range(limit_range: Object) -> Object:
    """Keep what `limit_ranges.parse` reads, of each list the first."""
    limits = itertools.islice(objects.spec(limit_range).get("limits") or (), MOST_ITEMS)
    kept, left = [], MOST_LIMITS
    for each in limits:
        item: Object = {}
        for field, value in each.items():
            item[field] = _first(value, left) if isinstance(value, dict) else value
            left -= len(item[field]) if isinstance(value, dict) else 0

        kept.append(item)

    return {"metadata": _metadata(limit_range), "spec": {"limits": kept}}


def _test(
    type_: type, trim: Callable[[Object], Object], parse: Callable[[Object], object]
) -> Callable[[Any], bool]:
    def can_be_read(obj: Any) -> bool:
        try:
            msgspec.convert(obj, type_)
            parse(trim(obj))
        except (msgspec.ValidationError, RecursionError, ConfigError):
            return False

        called = names.SUBDOMAIN.fullmatch(objects.name(obj))
        return bool(called and names.LABEL.fullmatch(objects.namespace(obj)))

    return can_be_read


def _metadata(obj: Object) -> Object:
    given = objects.metadata(obj)
    kept = ("name", "namespace", "uid", "resourceVersion")
    return {field: given[field] for field in kept if field in given}


def _first(amounts: Mapping[str, Any] | None, most: int = MOST_NAMES) -> Object:
    listed = ((k, v) for k, v in (amounts or {}).items() if len(k) <= _NAME_LENGTH)
    return dict(itertools.islice(listed, min(most, MOST_NAMES)))


is_quota: Final = _test(_QuotaShape, trim_quota, resource_quotas.parse)
"""Tells whether the value can be read as a ResourceQuota."""

is_limit_range: Final = _test(_LimitRangeShape, trim_limit_range, limit_ranges.parse)
"""Tells whether the value can be read as a LimitRange."""
