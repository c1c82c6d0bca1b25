"""Reads which node pools of a target may grow, as an annotation of its Target says. Pure.

Autoscalers do not say in the API which nodes they could add, so whoever connects a target does:

    [{"labels": {"nvidia.com/gpu.product": "A100"}, "allocatable": {"nvidia.com/gpu": 8}, "max": 4}]

What is not said of a pool's nodes is taken to fit: the autoscaler decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from vnode.api import documents, keys, names, resources, strict_decoding
from vnode.api.errors import ConfigError
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.api.shape import Shape

_MOST: Final = 32  # pools
_MOST_NODES: Final = 100_000  # of a pool
_MOST_ENTRIES: Final = 32  # labels of a pool, and resources
_LIMIT: Final = 16 * 1024  # characters
_EXAMPLE: Final = (
    '[{"labels": {"nvidia.com/gpu.product": "A100"}, "allocatable": {"nvidia.com/gpu": 8}, '
    '"max": 4}]'
)


class _Pool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allocatable: dict[str, str | int]
    max: int
    min: int = 0
    labels: dict[str, str] = {}


class _Pools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pools: list[_Pool]


@dataclass(frozen=True, slots=True)
class NodePool:
    """A node pool that an autoscaler may grow."""

    labels: Mapping[str, str]
    allocatable: Resources
    """Of one of its nodes."""
    max: int
    """Nodes that it has at most."""
    min: int = 0

    def may_hold(self, shape: Shape) -> bool:
        """Tell whether a new node of the pool may take a pod, by all that is said of it."""
        wanted = {
            name: amount
            for name, amount in shape.wanted.items()
            if name in self.allocatable or resources.is_extended(name)
        }
        matches = shape.matches(self.labels, self.labels.keys())
        return matches and not resources.insufficient(wanted, self.allocatable)

    def left(self, pools: Iterable[NodePool], rows: Rows | None) -> int:
        """Return how many nodes may come to the pool, which is one of a target's `pools`.

        The nodes that it has are those that rows tell with its labels, as far as these are told;
        pools that rows do not tell apart have them together.
        """
        told = {key: value for key, value in self.labels.items() if rows and key in rows.keys}
        if rows is None or not told:
            return self.max

        present = sum(
            row.count
            for alike in rows.alike
            if told.items() <= alike.labels.items()
            for row in alike.rows
        )
        together = sum(pool.max for pool in pools if told.items() <= pool.labels.items())
        return min(self.max, max(0, together - present))


def may_grow(pools: Sequence[NodePool], rows: Rows | None, shape: Shape) -> bool:
    """Tell whether one of a target's pools may get a node that takes a pod of that shape."""
    return any(pool.may_hold(shape) and pool.left(pools, rows) for pool in pools)


def parse(text: str) -> tuple[NodePool, ...]:
    """Parse the annotation; ConfigError says what is wrong, and how to write it."""
    where = f"annotation {keys.NODE_POOLS}"
    if not text.strip():
        return ()

    if len(text) > _LIMIT:
        raise ConfigError(f"{where} has more than {_LIMIT} characters")

    try:
        listed = documents.parse(text)
    except ConfigError as error:
        raise ConfigError(
            f"{where} is neither JSON nor YAML ({error}): write {_EXAMPLE}"
        ) from error

    if not isinstance(listed, list) or len(listed) > _MOST:
        raise ConfigError(f"{where} is no list of at most {_MOST} pools: write {_EXAMPLE}")

    found = strict_decoding.decode(_Pools, {"pools": listed}, where)
    return tuple(_pool(pool, f"{where}: pools[{i}]") for i, pool in enumerate(found.pools))


def _pool(pool: _Pool, where: str) -> NodePool:
    if not 0 <= pool.min <= pool.max <= _MOST_NODES or not pool.max:
        raise ConfigError(
            f"{where}.max must be from 1 to {_MOST_NODES}, and .min from 0 to .max: they are "
            f"{pool.max} and {pool.min}"
        )

    if max(len(pool.labels), len(pool.allocatable)) > _MOST_ENTRIES:
        raise ConfigError(f"{where} has more than {_MOST_ENTRIES} labels or resources")

    for key, value in pool.labels.items():
        if not (names.QUALIFIED_NAME.fullmatch(key) and _is_value(value)):
            raise ConfigError(f"{where}.labels: {key}={value} is no label of a node")

    try:
        allocatable = resources.parse(pool.allocatable)
    except ConfigError as error:
        raise ConfigError(f"{where}.allocatable: {error}") from error

    if bad := [name for name in allocatable if not names.QUALIFIED_NAME.fullmatch(name)]:
        raise ConfigError(f"{where}.allocatable: {bad[0]!r} is no name of a resource")

    if not any(allocatable.values()) or min(allocatable.values()) < 0:
        raise ConfigError(f"{where}.allocatable: say what one of its nodes has, such as 8 GPUs")

    return NodePool(pool.labels, allocatable, pool.max, pool.min)


def _is_value(value: str) -> bool:
    return not value or bool(names.LABEL_VALUE.fullmatch(value))
