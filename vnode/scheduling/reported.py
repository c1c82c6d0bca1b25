"""Reads what a target reports that it has: the ClusterSummary, as its agent or Admiralty keeps it.

It comes from another cluster: what cannot be read counts as not said.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from vnode.api import documents, keys, objects, resources, rows_text
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.scheduling import node_rows
from vnode.scheduling.node_rows import NodeRows

_FREE_LIMIT: Final = 64 * 1024  # bytes; the annotation comes from another cluster
_NONE: Final = (None, None)
_UNREADABLE: Final = (
    *documents.NO_JSON,
    ConfigError,
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
)

log = logging.getLogger(__name__)


def read_allocatable(summary: Object | None, node: Object) -> Resources | None:
    """Return what a target offers; until it has said so to this agent, what its Node has kept."""
    offered = objects.status(node).get("allocatable") or None
    if summary is not None:
        offered = summary.get("allocatable")

    if offered is None:
        return None

    try:
        return resources.parse(offered)
    except (ConfigError, AttributeError, TypeError) as error:
        log.warning("a target's summary cannot be read: %s", error)
        return None


def read_free(summary: Object | None) -> tuple[Resources | None, Resources | None]:
    """Return (free on all nodes, most free on any one) of a ClusterSummary; None if not given."""
    try:
        free = _free(summary)
        return (resources.parse(free["sum"]), resources.parse(free["largest"])) if free else _NONE
    except _UNREADABLE as error:
        log.warning("a target's free resources cannot be read: %s", error)
        return _NONE


def read_rows(summary: Object | None) -> Rows | None:
    """Return what its nodes have free as rows; None if it does not tell them."""
    return rows_text.decode(objects.annotations(summary or {}).get(keys.ROWS))


def read_nodes(
    summary: Object | None, rows: Rows | None, largest: Resources | None
) -> NodeRows | None:
    """Return the nodes of a target on which promises count; None if it does not tell of any.

    `rows` and `largest` are those of its ClusterSummary; an older agent lists some nodes.
    """
    if rows is not None:
        return node_rows.of_rows(rows, largest or {})

    try:
        free = _free(summary)
        nodes = list(map(resources.parse, free["rows"][: node_rows.MOST])) if free else []
        is_complete = len(nodes) == int(free["nodes"]) if free else False
    except _UNREADABLE:
        return None

    return NodeRows(nodes, is_complete=is_complete) if nodes else None


def _free(summary: Object | None) -> Any:
    """Decode the annotation; None if there is none."""
    text = objects.annotations(summary or {}).get(keys.FREE_RESOURCES)
    if not isinstance(text, str) or len(text) > _FREE_LIMIT:
        return None

    return documents.decode(text)
