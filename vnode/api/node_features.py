"""What kubelets declare that they can do, as a target's nodes have it in common. Pure.

The API server of a source refuses some changes of pods, such as a resize, unless their node
declares the feature that it takes, and schedulers and people read the same fields. A virtual node
stands for all nodes on which a delegate may come to be, so it has what all of them declare: the
target's agent writes that into its ClusterSummary. Names are not interpreted, so that features of
later releases of Kubernetes pass, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from vnode.api import documents, objects
from vnode.api.objects import Object

FIELDS: Final = ("declaredFeatures", "features", "runtimeHandlers")
"""The fields of a Node's status."""

_LIMIT: Final = 16 * 1024  # bytes of the annotation
_MOST: Final = 100  # features, and runtime handlers
_FEATURE: Final = re.compile(r"[A-Za-z][A-Za-z0-9/]{0,127}")
_HANDLER: Final = re.compile(r"(?:[a-z0-9](?:[-.a-z0-9]{0,61}[a-z0-9])?)?")  # "" is the default


class NodeFeatures(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What nodes have in common; `runtime_handlers` has the features of each handler by name."""

    declared_features: tuple[str, ...] = ()
    features: Mapping[str, bool] = {}
    runtime_handlers: Mapping[str, Mapping[str, bool]] = {}

    def status(self) -> Object:
        """Return the fields of a Node's status that are not empty."""
        handlers = [
            {"name": name, **({"features": dict(found)} if found else {})}
            for name, found in sorted(self.runtime_handlers.items())
        ]
        fields: Object = {
            "declaredFeatures": sorted(self.declared_features),
            "features": dict(self.features),
            "runtimeHandlers": handlers,
        }
        return {field: value for field, value in fields.items() if value}


NONE: Final = NodeFeatures()


def common(nodes: Iterable[Object]) -> NodeFeatures:
    """Return what all nodes declare; NONE for no nodes."""
    found: NodeFeatures | None = None
    for node in nodes:
        own = _of(objects.status(node))
        found = own if found is None else _both(found, own)
        if found == NONE:
            break

    return found or NONE


def encode(features: NodeFeatures) -> str:
    """Return the text for an annotation, "" for none, or if it is too long."""
    if features == NONE:
        return ""

    text = msgspec.json.encode(features, order="deterministic")
    return text.decode() if len(text) <= _LIMIT else ""


def decode(text: object) -> NodeFeatures:
    """Return what such an annotation says, without what an API server might refuse in a Node.

    NONE without one, or if it makes no sense.
    """
    return _decode(text) if isinstance(text, str) and len(text) <= _LIMIT else NONE


@lru_cache(maxsize=256)  # summaries come every second, with the same text
def _decode(text: str) -> NodeFeatures:
    try:
        found = msgspec.json.decode(text, type=dict[str, Any])
    except documents.NO_JSON:
        return NONE

    declared, handlers = found.get("declaredFeatures"), _dict(found.get("runtimeHandlers"))
    return _valid(
        NodeFeatures(
            tuple(filter(_is_text, declared if isinstance(declared, list) else ())),
            _flags(found.get("features")),
            {name: _flags(given) for name, given in handlers.items() if _are_flags(given)},
        )
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _are_flags(value: Any) -> bool:
    return isinstance(value, dict) and len(_flags(value)) == len(value)


def _flags(value: Any) -> dict[str, bool]:
    """Return the features that are true or false; what else is in there hides none of them."""
    return {name: flag for name, flag in _dict(value).items() if isinstance(flag, bool)}


def _valid(features: NodeFeatures) -> NodeFeatures:
    declared = filter(_FEATURE.fullmatch, dict.fromkeys(features.declared_features))
    handlers = {k: v for k, v in features.runtime_handlers.items() if _HANDLER.fullmatch(k)}
    return NodeFeatures(
        tuple(sorted(declared)[:_MOST]),
        _true(features.features),
        {name: _true(handlers[name]) for name in sorted(handlers)[:_MOST]},
    )


def _of(status: Object) -> NodeFeatures:
    """Return what one node declares; what is written otherwise than kubelets do counts as none."""
    handlers = {h.get("name", ""): h.get("features") for h in status.get("runtimeHandlers") or ()}
    raw: Any = {
        "declaredFeatures": status.get("declaredFeatures") or (),
        "features": status.get("features") or {},
        "runtimeHandlers": {name: found or {} for name, found in handlers.items()},
    }
    try:
        return _valid(msgspec.convert(raw, NodeFeatures))
    except msgspec.ValidationError:
        return NONE


def _true(values: Mapping[str, bool]) -> dict[str, bool]:
    known = {k: True for k, value in sorted(values.items()) if value and _FEATURE.fullmatch(k)}
    return dict(list(known.items())[:_MOST])


def _both(one: NodeFeatures, other: NodeFeatures) -> NodeFeatures:
    declared = set(one.declared_features) & set(other.declared_features)
    shared = one.runtime_handlers.keys() & other.runtime_handlers.keys()
    return NodeFeatures(
        tuple(sorted(declared)),
        _shared(one.features, other.features),
        {
            name: _shared(one.runtime_handlers[name], other.runtime_handlers[name])
            for name in sorted(shared)
        },
    )


def _shared(one: Mapping[str, bool], other: Mapping[str, bool]) -> dict[str, bool]:
    return dict.fromkeys(sorted(one.keys() & other.keys()), True)
